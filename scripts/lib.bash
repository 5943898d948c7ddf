# shellcheck shell=bash
# Shared by the scripts in this folder, which source it. Moves to the repository's root.

caller_folder=$PWD
this_script=$(realpath -- "$0")
cd -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/.." || exit 1

# A path that the caller typed, which was relative to where they stood.
from_caller() { (cd "$caller_folder" && realpath -m -- "$1"); }

say() { printf '%s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit "${2:-1}"
}

# step "what" command…: runs the command and says how long it took. Keeps its exit status.
step() {
  local what=$1 start=$SECONDS status=0
  shift
  say "== $what"
  "$@" || status=$?
  say "== $what: $((SECONDS - start)) s"
  return "$status"
}

# usage: prints the comment block at the head of the calling script.
usage() { sed -n '2,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$this_script"; }

cores() { nproc; }
