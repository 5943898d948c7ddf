#!/usr/bin/env python3
"""Runs clang-tidy 14 with .clang-tidy over the sources that a build compiles, tests left out.

The build must be there (scripts/build), for its compile commands and generated headers. A file that
passed is not looked at again until it, a header that it includes, the checks or the command change:
passes are remembered by a hash of the text, comments and all, in ~/.cache/reckon/tidy.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
PASSED = CACHE / "reckon" / "tidy"


def relevant(command: str) -> list[str]:
    """What of a compiler command decides how the text is read."""
    words = shlex.split(command)
    flags = [word for word in words if word.startswith(("-I", "-D", "-std", "-m"))]
    for word, following in zip(words, words[1:]):
        if word in ("-isystem", "-include"):
            flags += [word, following]
    return flags


def sources(build: pathlib.Path) -> dict[str, list[str]]:
    """Source file -> compiler flags."""
    database = build / "compile_commands.json"
    if not database.is_file():
        sys.exit(f"check_tidy: {database} is missing; run scripts/build {build.name} first")
    return {
        entry["file"]: relevant(entry["command"])
        for entry in json.loads(database.read_text(encoding="utf-8"))
        if entry["file"].startswith(f"{ROOT}/src/")
        and not entry["file"].endswith(("_test.cpp", "_bench.cpp"))
    }


def check(name: str, flags: list[str], config: bytes) -> str:
    """What is wrong with one file, or ""."""
    preprocess = ["clang-14", "-x", "c++", "-E", "-C", "-P", *flags, name]
    text = subprocess.run(preprocess, capture_output=True, cwd=ROOT)
    portable = shlex.join(flags).replace(str(ROOT), "")  # clones share what passed
    key = hashlib.sha256(config + portable.encode() + b"\0" + text.stdout).hexdigest()
    if text.returncode == 0 and (PASSED / key).is_file():
        return ""
    tidy = ["clang-tidy-14", "--quiet", name, "--", *flags]
    result = subprocess.run(tidy, capture_output=True, text=True, cwd=ROOT)
    if result.returncode == 0:
        (PASSED / key).touch()
        return ""
    return result.stdout + result.stderr


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="release", help="whose compile commands to use")
    args = parser.parse_args()
    PASSED.mkdir(parents=True, exist_ok=True)
    settings = [ROOT / ".clang-tidy", *sorted(ROOT.glob("src/**/.clang-tidy"))]
    config = b"".join(path.read_bytes() for path in settings)
    files = sources(ROOT / "build" / args.preset)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for output in pool.map(lambda item: check(*item, config), files.items()):
            if output:
                failed += 1
                print(output, flush=True)
    if failed:
        sys.exit(f"check_tidy: {failed} of {len(files)} files have problems")
    print(f"check_tidy: {len(files)} files")


if __name__ == "__main__":
    main()
