#!/usr/bin/env bash
# Builds upstream's own tools, or with `rpc` its RPC device, from the pinned
# source against the libraries in ./lib, so that both sides of a comparison run
# the same kernels. They are compiled once into the cache, copied into ./lib
# (upstream looks for backend modules beside its executable) and linked from
# ./bin.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

src=$cache/src
out=$cache/peers
flags=(-std=c++17 -O2 -DNDEBUG -DGGML_BACKEND_DL -DGGML_BACKEND_SHARED -DGGML_SHARED -DLLAMA_SHARED
	"-I$src/include" "-I$src/ggml/include" "-I$src/ggml/src" "-I$src/common" "-I$src/vendor" "-I$src/src")
# shellcheck disable=SC2016 # $ORIGIN is for the dynamic linker
case $so in
so) rpath=(-Wl,-rpath,'$ORIGIN' -Wl,-rpath,'$ORIGIN/..') ;;
dylib) rpath=(-Wl,-rpath,@loader_path -Wl,-rpath,@loader_path/..) ;;
esac

# library STEM prints the file in ./lib, whatever its version suffix.
library() {
	local f
	for f in "$root/lib/$1.$LLAMA_RELEASE.$so" "$root/lib/$1.$so"; do
		if [ -e "$f" ]; then
			echo "$f"
			return
		fi
	done
	die "$1 is not in $root/lib" "run make setup"
}

# made FILE COMMAND... runs COMMAND with a temporary output unless FILE exists.
made() {
	local file=$1
	shift
	[ -e "$out/$file" ] && return
	say "compiling $file"
	"$@" -o "$out/$file.new"
	mv "$out/$file.new" "$out/$file"
}

tool() {
	made "llama-$1" g++ "${flags[@]}" "$src/tools/$2/main.cpp" "$src/tools/$2/$2.cpp" "-I$src/tools/$2" \
		"$(library libllama-common)" "$(library libllama)" "$(library libggml)" "$(library libggml-base)" "${rpath[@]}" -lpthread
}

build_peers() {
	mkdir -p "$out"
	tool bench llama-bench &
	tool completion completion &
	wait %1 && wait %2
	tool perplexity perplexity
}

# A module built by upstream's cmake would bring a second libggml-base with it,
# because the names differ; this one asks for the library that is loaded.
build_rpc() {
	mkdir -p "$out"
	made libggml-rpc.so g++ "${flags[@]}" -fPIC -shared -DGGML_BACKEND_BUILD \
		"$src/ggml/src/ggml-rpc/ggml-rpc.cpp" "$src/ggml/src/ggml-rpc/transport.cpp" \
		"$(library libggml-base)" "${rpath[@]}" -lpthread
	made ggml-rpc-server g++ "${flags[@]}" "$src/tools/rpc/rpc-server.cpp" \
		"$(library libggml)" "$(library libggml-base)" "${rpath[@]}" -lpthread
}

# place FILE DIR copies one result from the cache when it differs.
place() {
	cmp -s "$out/$1" "$2/$1" && return
	cp "$out/$1" "$2/$1.new"
	mv "$2/$1.new" "$2/$1"
}

[ -d "$src" ] && [ -d "$root/lib" ] || "$setup_dir/fetch.sh"
[ -d "$root/lib" ] || "$setup_dir/link.sh"
mkdir -p "$root/bin"
case ${1:-peers} in
peers)
	locked peers build_peers
	for t in llama-bench llama-completion llama-perplexity; do
		place $t "$root/lib"
		ln -sfn ../lib/$t "$root/bin/$t"
	done
	;;
rpc)
	# A folder of its own: were the module in ./lib, every run would load it.
	# The server needs it and the CPU modules beside itself.
	locked peers build_rpc
	mkdir -p "$root/lib/rpc"
	place libggml-rpc.so "$root/lib/rpc"
	place ggml-rpc-server "$root/lib/rpc"
	for f in "$root"/lib/libggml-cpu*."$so"; do ln -sfn "../${f##*/}" "$root/lib/rpc/${f##*/}"; done
	ln -sfn ../lib/rpc/ggml-rpc-server "$root/bin/ggml-rpc-server"
	;;
*) die "no such set of peers: $1" "use peers or rpc" ;;
esac
