#!/usr/bin/env bash
# Makes docs/results/sample.db, the ledger that the figures in the documents are
# generated from, by real runs: a model larger than the memory it may use is
# run as planned, then swept. Wins, undecided, void and fatal outcomes are all
# kept. It needs a quiet machine and the right to make a control group, and
# takes about fifteen minutes; `docs/sample.sh STAGE...` runs a part. BMOE= names
# another program than bin/bmoe:
#
#   first   a planned run, reading lanes, cache sizes, the A/A control
#   second  cache policies, a claim that fails, a lever that cannot act, an arm
#           that dies, the fit
#   third   the plan against llama.cpp's defaults
#   share   what may be shown of all that, as docs/results/sample.db
set -euo pipefail
cd "$(dirname "$0")/.."
bmoe=${BMOE:-bin/bmoe}
out=out/sample
model=$out/model.gguf
unpacked=$out/model-q8_0.gguf
percent=40 # of the model's size is all the memory there is
export BMOE_DB=$out/results.db

group=
leave() {
	[ -n "$group" ] || return 0
	echo $$ >"${group%/*}/cgroup.procs"
	rmdir "$group"
}
trap leave EXIT

# limited moves this script, and so all that it starts, into a group that may
# use so many percent of the model's size.
limited() {
	local v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup file
	if [ -f $v1/memory.limit_in_bytes ]; then
		group=$v1/bmoe-sample-$$ file=memory.limit_in_bytes
	else
		group=$v2/bmoe-sample-$$ file=memory.max
	fi
	mkdir "$group"
	echo $(($(wc -c <"$model") * percent / 100)) >"$group/$file"
	echo $$ >"$group/cgroup.procs"
}

step() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# fails COMMAND... is a step that is meant to end without a finding.
fails() { step "$@" || echo "(exit $?)"; }

# made FILE TYPE LAYERS makes a model and leaves nothing of it in the page cache.
made() {
	mkdir -p "$out"
	[ -f "$1" ] && return
	"$bmoe" synth -o "$1" --arch qwen3moe --layers "$3" --experts 64 --experts-used 8 \
		--embd 1024 --ff 512 --type "$2" --seed 1 --skew 1
	sync "$1"
	dd if="$1" iflag=nocache count=0 status=none
}

streamed=(-m "$model" --moe-stream -c 1024 -t 2)
planned=("${streamed[@]}" --auto)
by_hand=("${streamed[@]}" --dense-weights anon --cache-mb 96)
feed=(--ignore-eos --random-tokens 1)

first() {
	step "$bmoe" run "${planned[@]}" -p "Once upon a time" -n 64 "${feed[@]}"
	step "$bmoe" sweep "${planned[@]}" --lever io-threads --values 1,2,4 --pairs 8
	step "$bmoe" sweep "${planned[@]}" --lever cache-mb --values 32,64,96,128 --pairs 7
	step "$bmoe" sweep "${planned[@]}" --aa --pairs 8
}

second() {
	step "$bmoe" sweep "${by_hand[@]}" --lever cache-policy --values lru,a2d --pairs 8
	fails "$bmoe" sweep "${by_hand[@]}" --lever overlap --pairs 6 --predict "better by 50%..80%"
	fails setpriv --bounding-set=-ipc_lock prlimit --memlock=65536:65536 \
		"$bmoe" sweep "${by_hand[@]}" --lever cache-pin --pairs 6 -n 16
	fails "$bmoe" sweep "${streamed[@]}" --dense-weights anon --lever cache-mb --values 96,400 --pairs 6 --over-ledger
	step "$bmoe" fit -m "$model"
}

# Of Q4_0 weights llama.cpp by default makes a repacked copy, which does not fit:
# it is killed. Q8_0 weights it maps as they are.
third() {
	fails "$bmoe" sweep "${planned[@]}" --no-repack --plan-vs-baseline --values mmap,cache-mb --pairs 8 -n 8
	step "$bmoe" sweep -m "$unpacked" --moe-stream -c 1024 -t 2 --auto --plan-vs-baseline --values mmap,cache-mb --pairs 8 -n 8
}

share() {
	mkdir -p docs/results
	rm -f docs/results/sample.db
	step "$bmoe" db export --format db -o docs/results/sample.db
	step "$bmoe" db check --db docs/results/sample.db
}

made "$model" q4_0 10
made "$unpacked" q8_0 5
limited
[ $# -gt 0 ] || set -- first second third share
for stage in "$@"; do
	case $stage in
	first | second | third | share) "$stage" ;; # by itself: in an && list a failed step would not end it
	*) echo "$0: no stage $stage" >&2 && exit 2 ;;
	esac
done
