#!/usr/bin/env bash
# Builds the pinned release with cmake and ninja, patched as the packagers
# patch it: without the patch, a model made from tensors of ours would get its
# optional tensors invented. About four minutes on two cores, kept in the cache.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prefix=$cache_base/llama.cpp-$LLAMA_RELEASE-source
src=$cache/src

# The work stays where it is until it is done: an interrupted build goes on.
work=$cache_base/llama.cpp-$LLAMA_RELEASE-building

build_source() {
	[ -d "$prefix" ] && return
	if [ ! -f "$work/ready" ]; then
		rm -rf "$work"
		mkdir -p "$work"
		git clone -q "$src" "$work/src" 2>/dev/null
		git -C "$work/src" apply "$src"/.bmoe-patches/*.diff
		touch "$work/ready"
	fi
	cmake -S "$work/src" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DGGML_NATIVE=OFF \
		-DGGML_OPENMP=OFF -DLLAMA_BUILD_COMMON=ON -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF \
		-DCMAKE_INSTALL_RPATH="\$ORIGIN" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON >"$work/log" 2>&1 &&
		cmake --build "$work/build" -j "$jobs" >>"$work/log" 2>&1 || {
		grep -E 'error|FAILED' "$work/log" | tail -n 10 >&2
		die "llama.cpp $LLAMA_RELEASE did not build" "its log is $work/log" "the same command goes on from there"
	}
	mkdir -p "$work/out/lib"
	cp -a "$work"/build/bin/*."$so"* "$work/out/lib"
	cp -a "$cache/include" "$src/LICENSE" "$work/out"
	mv "$work/out" "$prefix"
	rm -rf "$work"
}

"$setup_dir/deps.sh" go gcc g++ npm git tar openssl cmake ninja
"$setup_dir/fetch.sh"
say "building llama.cpp $LLAMA_RELEASE from source into $prefix"
locked source build_source
say "done; to use it: make build LLAMA_DIR=$prefix"
