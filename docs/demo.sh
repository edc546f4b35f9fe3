#!/usr/bin/env bash
# The whole job on a model made here: a Mixture-of-Experts model runs in 40 % of
# the memory it would take, planned, predicted, measured and stored; a sweep
# asks whether more reading lanes help; a report shows both. Run it by
# `make demo`; everything it writes is under out/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/demo
model=$out/model.gguf
export BMOE_DB=$out/results.db

# step COMMAND... shows a command as one would type it, then runs it.
step() {
	printf '\n$ %s\n' "${*@Q}" | sed "s/'\([A-Za-z0-9_.,:=\/-]*\)'/\1/g"
	"$@"
}

rm -rf "$out"
mkdir -p "$out"
step bin/bmoe synth -o "$model" --arch qwen3moe --layers 10 --experts 64 --experts-used 8 \
	--embd 1024 --ff 512 --type q4_0 --seed 1 --skew 1
# The file just written is still in the page cache: give that back.
sync "$model"
dd if="$model" iflag=nocache count=0 status=none 2>/dev/null || true

bytes=$(wc -c <"$model")
limit=$((bytes * 40 / 100))
mib() { echo $(($1 >> 20)); }

# --- a memory limit of 40 % of the model ------------------------------------

group= parent=
leave() {
	[ -n "$group" ] || return 0
	echo $$ >"$parent/cgroup.procs" 2>/dev/null || true
	rmdir "$group" 2>/dev/null || true
}
trap leave EXIT

# enter PARENT FILE makes a group under PARENT, limits it through FILE and
# moves this script, and so all that it starts, into it.
enter() {
	parent=$1
	group=$parent/bmoe-demo-$$
	mkdir "$group" 2>/dev/null || { group= && return 1; }
	if ! { echo "$limit" >"$group/$2" && echo $$ >"$group/cgroup.procs"; } 2>/dev/null; then
		rmdir "$group"
		group=
		return 1
	fi
}

# own_group PATTERN prints the path of this process's group in a hierarchy.
own_group() { sed -n "s/^[0-9]*:$1:\(.*\)/\1/p" /proc/self/cgroup 2>/dev/null | head -n 1; }

limited() {
	local v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup
	if [ -f $v1/memory.limit_in_bytes ]; then
		enter "$v1$(own_group memory)" memory.limit_in_bytes || enter $v1 memory.limit_in_bytes
	elif grep -qw memory $v2/cgroup.subtree_control 2>/dev/null; then
		enter $v2 memory.max
	else
		return 1
	fi
}

cap=()
echo
if limited; then
	echo "memory limit: $(mib $limit) MiB, 40 % of the model's $(mib "$bytes") MiB, by control group"
else
	# The expert cache is what grows; the rest of the program takes about a fifth.
	cap=(--cache-mb $(($(mib $limit) * 4 / 5)))
	echo "no right to make a control group here: the demo caps its own expert cache at ${cap[1]} MiB instead"
fi

# --- run, sweep, report -----------------------------------------------------

common=(-m "$model" --moe-stream "${cap[@]}" --auto -c 1024)
step bin/bmoe run "${common[@]}" --plan-explain -p "Once upon a time" -n 64 --ignore-eos --random-tokens 1
step bin/bmoe sweep "${common[@]}" --lever io-threads --values 1,4 --pairs 6 -n 32 --ignore-eos --random-tokens 1
step bin/bmoe report --out "$out/report"
printf '\nthe report is in %s, everything measured in %s\n' "$out/report" "$BMOE_DB"
