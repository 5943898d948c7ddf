#!/usr/bin/env python3
"""Sums numbers and prints how often a second, as JSON: the arm of command-python.yaml.

--dispatch FILE takes a line for each thing that was chosen: here, which variant ran.
"""
import argparse
import json
import time


def loop(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


VARIANTS = {"loop": loop, "for": loop, "builtin": sum}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="loop")
    parser.add_argument("--dispatch", metavar="FILE")
    options = parser.parse_args()
    variant = VARIANTS[options.variant]
    numbers = list(range(50_000))
    repeats = 20
    started = time.perf_counter()
    for _ in range(repeats):
        variant(numbers)
    elapsed_s = time.perf_counter() - started
    if options.dispatch:
        with open(options.dispatch, "w", encoding="utf-8") as file:
            print("sum", variant.__name__, file=file)
    print(json.dumps({"variant": options.variant, "sums_per_s": repeats / elapsed_s}))


if __name__ == "__main__":
    main()
