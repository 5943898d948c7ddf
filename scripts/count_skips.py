#!/usr/bin/env python3
"""Says how many tests of a ctest run were skipped, and why: count_skips.py [RESULTS.xml]

RESULTS.xml is what `ctest --output-junit` wrote, by default what scripts/test's last run of the
release build did. Prints nothing where no test was skipped, or where there is no such file (ctest
only listed its tests).
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

REASON = re.compile(r": Skipped\n(.*)")  # as Google Test prints it


def reasons(results: pathlib.Path) -> collections.Counter[str]:
    counted: collections.Counter[str] = collections.Counter()
    for case in ET.parse(results).iter("testcase"):
        if case.find("skipped") is None:
            continue
        found = REASON.search(case.findtext("system-out") or "")
        counted[found[1].strip() if found else "no reason given"] += 1
    return counted


def main() -> int:
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 2 if len(sys.argv) > 2 else 0
    root = pathlib.Path(__file__).resolve().parent.parent
    results = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "build/release/tests.xml"
    counted = reasons(results) if results.exists() else collections.Counter()
    if counted:
        print(f"{counted.total()} skipped:")
    for reason, count in counted.most_common():
        print(f"{count:5} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
