#!/usr/bin/env python3
"""Checks that the Markdown files are true where a script can tell.

 - a relative link leads to a file, and its #anchor to a heading;
 - a path of this repository in code marks (`src/kernels/plan.h`) exists;
 - README.md's table of Debian packages is the list of scripts/setup, in the same order.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS = r"(?:src|bench|scripts|docs|cmake|tests|tools|queues|prompts|\.ci)"
CODE_PATH = re.compile(rf"`({FOLDERS}/[\w./-]+)`")
PACKAGE_ROW = re.compile(r"^\| `([a-z0-9+.-]+)` \|")


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def anchors(path: pathlib.Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {slug(line.lstrip("#")) for line in lines if line.startswith("#")}


def check_link(page: pathlib.Path, target: str) -> str:
    if re.match(r"[a-z]+:", target):
        return ""
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.exists():
        return f"the link {target} leads nowhere"
    if anchor and anchor not in anchors(file):
        return f"{name or 'this page'} has no heading for #{anchor}"
    return ""


def check_page(page: pathlib.Path) -> list[str]:
    problems = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        found = [check_link(page, target) for target in LINK.findall(line)]
        found += [
            f"{path} does not exist" for path in CODE_PATH.findall(line) if not (ROOT / path).exists()
        ]
        problems += [f"{page.relative_to(ROOT)}:{number}: {text}" for text in found if text]
    return problems


def check_packages() -> list[str]:
    command = [str(ROOT / "scripts" / "setup"), "--checks", "--list"]
    wanted = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    listed = [match[1] for line in lines if (match := PACKAGE_ROW.match(line))]
    if listed == wanted:
        return []
    return [f"README.md lists {' '.join(listed)}, but scripts/setup has {' '.join(wanted)}"]


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    command = ["git", "-C", str(ROOT), "ls-files", "*.md"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    pages = [ROOT / name for name in names if name and (ROOT / name).is_file()]
    problems = [problem for page in pages for problem in check_page(page)] + check_packages()
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"check_docs: {len(problems)} problem(s)")
    print(f"check_docs: {len(pages)} pages")


if __name__ == "__main__":
    main()
