#!/usr/bin/env bash
# Puts DuckDB (pinned, verified by the lock file's sha512) into the cache that
# clones and CI share. Prints the folder. Does nothing when it is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/.*"@duckdb\/node-api": "\(.*\)".*/\1/p' "$here/package.json")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/bmoe
dir=$cache/duckdb-$version
if [ ! -e "$dir/node_modules/@duckdb/node-api/package.json" ]; then
	command -v npm >/dev/null || { echo "setup: npm is missing; the test that reads Parquet with DuckDB will be skipped" >&2; exit 0; }
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cp "$here/package.json" "$here/package-lock.json" "$tmp/"
	npm ci --prefix "$tmp" --ignore-scripts --no-audit --no-fund --silent >&2
	rm -rf "$dir"
	mv -T "$tmp" "$dir" 2>/dev/null || mv "$tmp" "$dir"
fi
echo "$dir"
