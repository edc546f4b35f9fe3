#!/usr/bin/env bash
# Makes out/vulkan: the program with the Vulkan module beside its libraries, for
# a run against a stock device (.ci/lavapipe). It is a folder of its own: were
# the module in ./lib, every run and test would load it.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ "$variant" = linux-x64 ] || die "no prebuilt Vulkan module for $variant" "build llama.cpp with -DGGML_VULKAN=ON and use LLAMA_DIR="
vulkan=$cache_base/llama.cpp-$LLAMA_RELEASE-linux-x64-vulkan
mkdir -p "$vulkan"
for part in src include; do # the same source: not fetched twice
	[ -e "$vulkan/$part" ] || ln -s "$cache/$part" "$vulkan/$part"
done
LLAMA_VARIANT=linux-x64-vulkan "$setup_dir/fetch.sh"
module=$vulkan/lib/libggml-vulkan.so
[ -f "$module" ] || die "$module is not in the package"
[ -x "$root/bin/bmoe" ] || die "there is no bin/bmoe" "run make build"
mkdir -p "$root/out/vulkan/bin" "$root/out/vulkan/lib"
cp "$root/bin/bmoe" "$root/out/vulkan/bin/bmoe"
for f in "$root"/lib/*."$so"*; do ln -sfn "$f" "$root/out/vulkan/lib/${f##*/}"; done
ln -sfn "$module" "$root/out/vulkan/lib/libggml-vulkan.so"
