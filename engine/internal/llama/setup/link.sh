#!/usr/bin/env bash
# Puts the libraries beside the binary (./lib next to ./bin) and the headers
# where the cgo directives look for them:
#   engine/internal/llama/include -> headers
#   engine/internal/llama/lib     -> ./lib
# Both links and ./lib are ignored by git. LLAMA_DIR= names a build of your own:
# an installed prefix (include/, lib/) or a source tree with build/bin.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

own=${LLAMA_DIR:-}
headers=$cache/include
libs=$cache/lib
[ -d "$cache/source-lib" ] && [ "${LLAMA_SOURCE:-}" = 1 ] && libs=$cache/source-lib

# own_build finds the two folders in LLAMA_DIR.
own_build() {
	[ -d "$own" ] || die "LLAMA_DIR=$own is not a folder" "point it at a llama.cpp $LLAMA_RELEASE source tree with build/bin, or at an installed prefix"
	own=$(cd "$own" && pwd)
	libs=
	for d in "$own/build/bin" "$own/lib" "$own/bin" "$own"; do
		if ls "$d"/libllama*."$so"* >/dev/null 2>&1; then
			libs=$d
			break
		fi
	done
	[ -n "$libs" ] || die "no libllama*.$so under LLAMA_DIR=$own" "looked in build/bin, lib, bin" "build it with -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON"
	[ -f "$own/ggml/include/ggml.h" ] || return 0 # an installed prefix carries no staging headers: use the pinned ones
	headers=$root/lib/include
}

# gather_headers makes the flat header folder from a source tree.
gather_headers() {
	mkdir -p "$headers"
	cp "$own"/include/*.h "$own"/ggml/include/*.h "$own"/ggml/src/ggml-backend-impl.h \
		"$own"/ggml/src/ggml-impl.h "$own"/common/fit.h "$own"/src/llama-ext.h "$headers"
}

# alias_name STEM: the linker asks for the pinned release's file names.
alias_name() {
	local want=$1.$LLAMA_RELEASE.$so
	[ -e "$root/lib/$want" ] || [ ! -e "$root/lib/$1.$so" ] || ln -s "$1.$so" "$root/lib/$want"
}

[ -z "$own" ] || own_build
stamp="$libs $(cd "$libs" && ls -l | cksum)"
if [ "$(cat "$root/lib/.from" 2>/dev/null)" != "$stamp" ]; then
	rm -rf "$root/lib.new" && mkdir "$root/lib.new"
	cp -a "$libs"/*."$so"* "$root/lib.new/"
	for f in "$libs"/*.metal "$libs"/*.metallib "$libs"/LICENSE; do
		[ ! -f "$f" ] || cp -a "$f" "$root/lib.new/"
	done
	echo "$stamp" >"$root/lib.new/.from"
	rm -rf "$root/lib" && mv "$root/lib.new" "$root/lib"
	alias_name libllama
	alias_name libggml
	[ "$headers" != "$root/lib/include" ] || gather_headers
	say "libraries from $libs"
fi
ln -sfn "$headers" "$package_dir/include"
ln -sfn ../../../lib "$package_dir/lib"
"$setup_dir/symbols.sh"
