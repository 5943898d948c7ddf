#!/usr/bin/env python3
"""Where the time of a decode step goes on a GPU: its kernels, and the gaps between them.

  tools/gpu_gaps.py TIMELINE.csv [--top N] [--json]

Reads what bench/cuda/timeline.cpp wrote. A step is one launch of the graph that was launched most
often. Kernels of a step may overlap (each starts its weight stream while the one before ends), so
 - busy: the time in which at least one kernel of the step runs,
 - gaps: the rest of the step between its first kernel's start and its last one's end,
 - between: from a step's last kernel to the next step's first: picking a token, the host.
A kernel's own share is the time by which it moves the end forward: from the later of its start and
the end of all kernels before, to its end; those shares and the gaps add up to the step.
Medians over the steps, the first two left out.
"""
import argparse
import collections
import csv
import json
import re
import statistics
import sys


def read(path: str) -> list[tuple[int, int, int, int, str]]:
    """(start, end, graph, launch, name) of each kernel, by start."""
    with open(path, newline="") as file:
        rows = [(int(r["start_ns"]), int(r["end_ns"]), int(r["graph"]), int(r["launch"]), r["name"])
                for r in csv.DictReader(file)]
    return sorted(rows)


def short(name: str) -> str:
    """The function's own name, of a mangled one: the last of the length-prefixed identifiers."""
    at = name.find("_ZN")
    if at < 0:
        return name
    at, words = at + 3, []
    while match := re.compile(r"\d+").match(name, at):
        length = int(match.group())
        words.append(name[match.end():match.end() + length])
        at = match.end() + length
    return words[-1] if words else name


def steps_of(rows: list[tuple[int, int, int, int, str]]) -> list[list[tuple[int, int, str]]]:
    """The nodes of each launch of the graph that was launched most often, in order."""
    launches: dict[int, dict[int, list[tuple[int, int, str]]]] = {}
    for start, end, graph, launch, name in rows:
        if graph:
            launches.setdefault(graph, {}).setdefault(launch, []).append((start, end, name))
    if not launches:
        sys.exit("no kernel of this timeline was launched by a graph")
    steps = max(launches.values(), key=len)
    return [steps[launch] for launch in sorted(steps)]


def measure(step: list[tuple[int, int, str]]) -> tuple[float, float, dict[str, list[float]]]:
    """(length, gaps, kernel -> [own time of each launch]) in µs."""
    own: dict[str, list[float]] = collections.defaultdict(list)
    gaps, reached = 0, step[0][0]
    for start, end, name in step:
        gaps += max(0, start - reached)
        own[short(name)].append(max(0, end - max(start, reached)) / 1e3)
        reached = max(reached, end)
    return (reached - step[0][0]) / 1e3, gaps / 1e3, own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline")
    parser.add_argument("--top", type=int, default=12, help="kernels to list (12)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    steps = steps_of(read(arguments.timeline))[2:]
    if len(steps) < 2:
        sys.exit("fewer than four steps in this timeline")
    measured = [measure(step) for step in steps]
    length = statistics.median(m[0] for m in measured)
    gaps = statistics.median(m[1] for m in measured)
    ends = [max(end for _, end, _ in step) for step in steps]
    between = statistics.median((after[0][0] - end) / 1e3
                                for end, after in zip(ends, steps[1:]))
    kernels = {name: (len(times), statistics.median(sum(m[2][name]) for m in measured))
               for name, times in measured[0][2].items()}
    ranked = sorted(kernels.items(), key=lambda item: -item[1][1])
    if arguments.json:
        json.dump({"steps": len(steps), "step_us": length, "gaps_us": gaps, "between_us": between,
                   "nodes": len(steps[0]),
                   "kernels": [{"name": n, "count": c, "us": t} for n, (c, t) in ranked]},
                  sys.stdout, indent=2)
        print()
        return
    print(f"{len(steps)} steps of {len(steps[0])} nodes; medians")
    print(f"step      {length:9.1f} µs")
    print(f"gaps      {gaps:9.1f} µs  {100 * gaps / length:5.1f} %")
    print(f"between   {between:9.1f} µs")
    print(f"\n{'kernel':44s} {'count':>6s} {'µs':>9s} {'share':>7s} {'µs each':>8s}")
    for name, (count, us) in ranked[:arguments.top]:
        print(f"{name:44.44s} {count:6d} {us:9.1f} {100 * us / length:6.1f}% {us / count:8.2f}")


if __name__ == "__main__":
    main()
