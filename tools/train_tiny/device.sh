#!/usr/bin/env bash
# Trains on a machine with one NVIDIA GPU that is lent for calls of a few minutes.
#
#   tools/train_tiny/device.sh WAIT [options of train.py]
#
# The first call starts train.py in a session of its own, which goes on between calls; every call
# waits for it, WAIT seconds at most, and copies what there is into the folder $OUT, files under
# 16 MiB each. Exit codes: 0 trained, 3 still running: call it again; else train.py's. Needs
# build/tiny as data.py wrote it; goes on from build/tiny/carried, where resume.* of an earlier
# call's results are.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
(($# >= 1)) || { sed -n '4,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
until=$((SECONDS + $1))
shift
out=${OUT:?is where results go}
state=build/tiny/state

# What train.py does for speed may fail on a machine that it was not tried on.
# shellcheck disable=SC2016 # the variables are the inner shell's
train='
  for without in "" --no-graph "--no-graph --no-compile"; do
    python3 tools/train_tiny/train.py --state "$0" --carried build/tiny/carried $without "$@"
    code=$?
    ((code == 0 || code == 3)) && break
    echo "device.sh: train.py ended with $code"
  done
  echo "$code" >"$0/code"'

if [[ ! -e $state ]]; then
  mkdir -p $state
  PYTHONUNBUFFERED=1 setsid bash -c "$train" $state "$@" >$state/train.log 2>&1 </dev/null &
fi
while [[ ! -e $state/code ]] && ((SECONDS < until)); do sleep 1; done
for file in train.log resume.json curve.csv best.pt; do
  [[ ! -e $state/$file ]] || cp $state/$file "$out"
done
tail -n 2 $state/train.log | cut -c 1-400
[[ -e $state/code ]] || exit 3
[[ $(<$state/code) == 0 ]] || cp $state/resume.*.pt "$out"
exit "$(<$state/code)"
