# Shared by the scripts in this folder; source it, do not run it.
set -euo pipefail

setup_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$setup_dir/../../../.." && pwd)
package_dir=$(dirname "$setup_dir")
# shellcheck source=pins.sh
. "$setup_dir/pins.sh"

say() { printf '%s\n' "setup: $*" >&2; }
die() {
	say "$1"
	shift
	for line in "$@"; do say "  $line"; done
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

variant=${LLAMA_VARIANT:-$(variant_for "$(uname -s)" "$(uname -m)")}
cache_base=${XDG_CACHE_HOME:-$HOME/.cache}/bmoe
cache=$cache_base/llama.cpp-$LLAMA_RELEASE-${variant:-unknown}
case $(uname -s) in
Darwin) so=dylib ;;
*) so=so ;;
esac
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# locked NAME COMMAND... runs COMMAND while no other set-up holds NAME, so that
# two clones that share the cache do not unpack into each other.
locked() {
	local name=$1
	shift
	mkdir -p "$cache_base"
	if have flock; then
		(
			flock 9
			"$@" 9>&-
		) 9>"$cache_base/$name.lock"
		return
	fi
	# Without flock (macOS): a folder is made by one process only. The
	# holder's pid is inside, so that a killed set-up does not block the next.
	local dir=$cache_base/$name.lock.d
	until mkdir "$dir" 2>/dev/null; do
		kill -0 "$(cat "$dir/pid" 2>/dev/null)" 2>/dev/null || rm -rf "$dir"
		sleep 1
	done
	echo $$ >"$dir/pid"
	local rc=0
	("$@") || rc=$?
	rm -rf "$dir"
	return $rc
}
