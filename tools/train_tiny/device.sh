#!/usr/bin/env bash
# Trains on a machine with one NVIDIA GPU that is lent for a few minutes at a time.
#
#   tools/train_tiny/device.sh SECONDS [options of train.py]
#
# Goes on with what an earlier call on the same machine left, or with build/tiny/carried (resume.*
# of an earlier call's results), for SECONDS at most, and copies results into the folder $OUT, a few
# files under 16 MiB each. Exit codes: 0 trained, exported (model.tar.gz) and evaluated
# (figures.json, evaluate.log); 3 not done: call it again; else train.py's. Needs build/tiny as
# data.py wrote it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
(($# >= 1)) || { sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
seconds=$1
shift
out=${OUT:?is where results go}
state=${TMPDIR:-/tmp}/tiny-state
began=$SECONDS
export PYTHONUNBUFFERED=1

train() {
  python3 tools/train_tiny/train.py --data build/tiny --state "$state" \
    --carried build/tiny/carried --portable "$state/portable" \
    --until $((seconds - (SECONDS - began))) "$@" 2>&1 | tee -a "$state/train.log"
}

mkdir -p "$state"
train "$@"
code=$?
# What the tool does for speed may fail on a machine that it was not tried on.
for without in --no-graph "--no-graph --no-compile"; do
  ((code == 0 || code == 3)) && break
  echo "device.sh: train.py ended with $code; again with $without"
  # shellcheck disable=SC2086 # two options
  train $without "$@"
  code=$?
done
cp "$state/train.log" "$out"
for file in resume.json curve.csv best.pt; do
  [[ ! -e $state/portable/$file ]] || cp "$state/portable/$file" "$out"
done
if ((code != 0)); then
  cp "$state/portable/"resume.*.pt "$out"
  exit "$code"
fi
tools=tools/train_tiny
python3 $tools/export.py --data build/tiny --state "$state/portable" -o "$state/model" || exit
python3 $tools/evaluate.py -m "$state/model" --data build/tiny --json "$out/figures.json" 2>&1 |
  tee "$out/evaluate.log"
python3 $tools/export.py --data build/tiny --state "$state/portable" -o "$state/model" --card \
  --figures "$out/figures.json"
tar -czf "$out/model.tar.gz" -C "$state/model" .
