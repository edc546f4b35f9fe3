#!/usr/bin/env bash
# Makes sure that the tools named on the command line (default: what a plain
# build needs) are there. On Debian and its kin, as root, it installs what is
# missing; elsewhere it names the packages.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# debian_package TOOL prints the Debian package that brings TOOL.
debian_package() {
	case $1 in
	cc | gcc) echo gcc libc6-dev ;;
	c++ | g++) echo g++ ;;
	git) echo git ca-certificates ;;
	ninja) echo ninja-build ;;
	flock) echo util-linux ;;
	openssl) echo openssl ;;
	*) echo "$1" ;;
	esac
}

tools=("$@")
[ ${#tools[@]} -gt 0 ] || tools=(go gcc g++ npm git tar openssl)
missing=() packages=()
for tool in "${tools[@]}"; do
	have "$tool" && continue
	# clang answers to the generic names on macOS and the BSDs.
	[ "$tool" = gcc ] && have cc && continue
	[ "$tool" = g++ ] && have c++ && continue
	missing+=("$tool")
	[ "$tool" = go ] || read -ra more <<<"$(debian_package "$tool")"
	packages+=("${more[@]:-}")
	more=()
done
[ ${#missing[@]} -gt 0 ] || exit 0

case " ${missing[*]} " in
*" go "*) die "go is missing" "install Go $(sed -n 's/^go //p' "$root/go.mod") or later and put its bin folder on PATH" ;;
esac
if [ "$(id -u)" = 0 ] && have apt-get; then
	say "installing ${packages[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >&2 || say "apt-get update ended with an error; trying with the lists at hand"
	# Recommended packages stay out, except that npm of some releases needs none.
	apt-get install -q -y --no-install-recommends "${packages[@]}" >&2 ||
		die "apt-get could not install ${packages[*]}" "install them by hand and run make setup again"
	exit 0
fi
die "missing: ${missing[*]}" "on Debian or Ubuntu: sudo apt-get install ${packages[*]}" \
	"elsewhere: install the tools of the same names" "then run make setup again"
