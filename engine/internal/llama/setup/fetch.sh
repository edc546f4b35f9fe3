#!/usr/bin/env bash
# Fetches the pinned llama.cpp into the cache folder:
#   $cache/lib      prebuilt libraries and backend modules
#   $cache/include  the headers we compile against
#   $cache/src      the source, for `make peers`, `make rpc`, `make llama-source`
# Each part is made in a temporary folder and renamed into place, so a part
# that exists is whole; an interrupted set-up goes on where it stopped.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ -n "$variant" ] || die "no prebuilt llama.cpp for $(uname -s) $(uname -m)" \
	"build llama.cpp $LLAMA_RELEASE yourself and run: make setup LLAMA_DIR=/path/to/it"

# sha512_of FILE prints the checksum in the spelling of the pins.
sha512_of() { printf 'sha512-%s\n' "$(openssl dgst -sha512 -binary "$1" | openssl base64 -A)"; }

# unpacked PACKAGE DIR downloads PACKAGE, verifies it and unpacks it into DIR.
unpacked() {
	local want got file
	want=$(integrity_of "$1")
	[ -n "$want" ] || die "$1 has no pinned checksum" "LLAMA_VARIANT=$variant is not one of the variants in $setup_dir/pins.sh"
	say "fetching $1@$LLAMA_PACKAGES"
	mkdir -p "$2"
	(cd "$2" && npm pack --silent --ignore-scripts "$1@$LLAMA_PACKAGES" >/dev/null) ||
		die "npm could not fetch $1@$LLAMA_PACKAGES" "check the network and run make setup again"
	file=$(echo "$2"/*.tgz)
	got=$(sha512_of "$file")
	[ "$got" = "$want" ] || die "$1@$LLAMA_PACKAGES does not have the pinned checksum; nothing was installed" "pinned $want" "got    $got"
	tar -xzf "$file" -C "$2"
	rm "$file"
}

fetch_lib() {
	[ -d "$cache/lib" ] && return
	unpacked "@node-llama-cpp/$variant" "$tmp/bin"
	rm -f "$tmp"/bin/package/bins/*/*.node
	mv "$tmp"/bin/package/LICENSE "$tmp"/bin/package/bins/*/
	mv "$tmp"/bin/package/bins/* "$cache/lib"
}

fetch_src() {
	[ -d "$cache/src" ] && return
	unpacked "$SOURCE_PACKAGE" "$tmp/src"
	git clone -q "$tmp/src/package/llama/gitRelease.bundle" "$tmp/src/llama.cpp" 2>/dev/null ||
		die "git could not read the source bundle of $SOURCE_PACKAGE"
	# `make llama-source` applies these; the headers are not touched by them.
	mv "$tmp/src/package/llama/patches" "$tmp/src/llama.cpp/.bmoe-patches"
	mv "$tmp/src/llama.cpp" "$cache/src"
}

# One flat folder: the public headers and the few staging ones the shim needs.
fetch_include() {
	[ -d "$cache/include" ] && return
	mkdir "$tmp/include"
	cp "$cache"/src/include/*.h "$cache"/src/ggml/include/*.h \
		"$cache"/src/ggml/src/ggml-backend-impl.h "$cache"/src/ggml/src/ggml-impl.h \
		"$cache"/src/common/fit.h "$cache"/src/src/llama-ext.h "$tmp/include"
	mv "$tmp/include" "$cache/include"
}

fetch_all() {
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	fetch_lib
	fetch_src
	fetch_include
}

# Nothing to do is the common case: no lock, no tools needed.
if [ -d "$cache/lib" ] && [ -d "$cache/src" ] && [ -d "$cache/include" ]; then exit 0; fi
"$setup_dir/deps.sh"
locked "llama.cpp-$LLAMA_RELEASE-$variant" fetch_all
