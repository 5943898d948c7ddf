#!/usr/bin/env python3
"""Checks tracked files for what must not be committed.

 - no file over 16 MB;
 - no path of somebody's machine (a home, work or temporary folder) in code, scripts or docs;
 - no note to self (the usual four- and five-letter words): what is open is written in the docs;
 - no tab, trailing space or Windows line end in sources, and a newline at the end of each file.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_BYTES = 16_000_000
TEXT = {".cpp", ".h", ".cu", ".cuh", ".py", ".md", ".txt", ".yaml", ".yml", ".json", ".cmake", ""}
# Recorded data and foreign text: only its size is checked.
DATA = ("tests/golden/", "models/tiny/tokenizer.json", "LICENSE")

MACHINE_PATH = re.compile(r"(?<![\w.~}$-])/(work|root|home|farm|tmp)/")
NOTE_TO_SELF = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
UNTIDY = re.compile(r"[ \t]+$|\r$|\t")


def tracked_files() -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    return [name for name in names.split("\0") if name and (ROOT / name).is_file()]


def check_text(name: str, text: str) -> list[str]:
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        match = MACHINE_PATH.search(line)
        # Tests make up home folders.
        if match and not (match[1] == "home" and name.endswith("_test.cpp")):
            problems.append(f"{where}: a path of one machine ({match[0]})")
        if match := NOTE_TO_SELF.search(line):
            problems.append(f"{where}: {match[0]} (write what is open in the docs)")
        if UNTIDY.search(line):
            problems.append(f"{where}: a tab, trailing space or Windows line end")
    if text and not text.endswith("\n"):
        problems.append(f"{name}: no newline at the end")
    return problems


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    problems = []
    for name in tracked_files():
        path = ROOT / name
        if (size := path.stat().st_size) > MAX_BYTES:
            problems.append(f"{name}: {size} bytes, over {MAX_BYTES}")
        elif path.suffix in TEXT and not name.startswith(DATA):
            problems += check_text(name, path.read_text(encoding="utf-8"))
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"check_files: {len(problems)} problem(s)")
    print("check_files: nothing that must not be committed")


if __name__ == "__main__":
    main()
