#!/usr/bin/env bash
# Builds the pinned release with cmake and ninja, patched as the packagers
# patch it: without the patch, a model made from tensors of ours would get its
# optional tensors invented. About four minutes on two cores, kept in the cache.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prefix=$cache_base/llama.cpp-$LLAMA_RELEASE-source
src=$cache/src

build_source() {
	[ -d "$prefix" ] && return
	local tmp
	tmp=$(mktemp -d "$cache_base/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	git clone -q "$src" "$tmp/src"
	git -C "$tmp/src" apply "$src"/.bmoe-patches/*.diff
	cmake -S "$tmp/src" -B "$tmp/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DGGML_NATIVE=OFF \
		-DGGML_OPENMP=OFF -DLLAMA_BUILD_COMMON=ON -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF \
		-DCMAKE_INSTALL_RPATH="\$ORIGIN" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON >"$tmp/log" 2>&1 &&
		cmake --build "$tmp/build" -j "$jobs" >>"$tmp/log" 2>&1 || {
		tail -n 30 "$tmp/log" >&2
		die "llama.cpp $LLAMA_RELEASE did not build; the end of its log is above"
	}
	mkdir -p "$tmp/out/lib"
	cp -a "$tmp"/build/bin/*."$so"* "$tmp/out/lib"
	cp -a "$cache/include" "$src/LICENSE" "$tmp/out"
	mv "$tmp/out" "$prefix"
}

"$setup_dir/deps.sh" go gcc g++ npm git tar openssl cmake ninja
"$setup_dir/fetch.sh"
say "building llama.cpp $LLAMA_RELEASE from source into $prefix"
locked source build_source
say "done; to use it: make build LLAMA_DIR=$prefix"
