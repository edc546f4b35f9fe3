#!/usr/bin/env bash
# Rewrites symbols.inc: the functions of llama.cpp that this package calls, so
# that dynlink.c can find them at run time. A name counts when our sources
# mention it and the libraries export it.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

list=$package_dir/symbols.inc
exported() {
	local f
	for f in "$root"/lib/libggml-base."$so" "$root/lib/libggml.$LLAMA_RELEASE.$so" "$root/lib/libllama.$LLAMA_RELEASE.$so"; do
		nm -D --defined-only "$f" 2>/dev/null || nm -gU "$f" 2>/dev/null || true
	done | awk '$2 == "T" { sub(/^_/, "", $3); print $3 }' | sort -u
}
mentioned() {
	grep -ohE '\b(llama|ggml|gguf)_[a-z0-9_]+' "$package_dir"/*.c "$package_dir"/*.cpp "$package_dir"/*.h "$package_dir"/*.go 2>/dev/null | sort -u
}
names=$(comm -12 <(exported) <(mentioned))
[ -n "$names" ] || die "no function of llama.cpp found in $root/lib" "run make setup"
new=$(
	echo '// Made by setup/symbols.sh; `go generate ./engine/internal/llama` renews it.'
	while read -r n; do echo "BM_SYMBOL($n)"; done <<<"$names"
)
[ "$new" = "$(cat "$list" 2>/dev/null)" ] || printf '%s\n' "$new" >"$list"
