#!/usr/bin/env python3
"""Prints a run's results as Markdown, for docs/tiny-model.md.

  tools/train_tiny/report.py [--state DIR] [--figures FILE] [--rows 12]

Settings, the time it took, the loss curve at evenly spaced
validations, and the model card's figures. Reads resume.json and what evaluate.py --json wrote.
"""
import argparse
import json
import sys
from pathlib import Path

from card import figures_text

COLUMNS = {"step": "step", "seconds": "seconds", "prose epochs": "prose passes",
           "code epochs": "code passes", "train nats": "loss", "prose train bits per byte":
           "prose, training", "prose bits per byte": "prose", "code train bits per byte":
           "code, training", "code bits per byte": "code", "prose accepted 1": "drafts, prose",
           "code accepted 1": "drafts, code"}
SETTINGS = ("length", "batch", "prose", "lr", "warmup", "weight_decay", "dropout", "mtp", "soft",
            "clip", "adamw", "seed")


def curve(rows: list[dict], most: int) -> str:
    """Evenly spaced rows, the first and the last among them."""
    last = len(rows) - 1
    chosen = sorted({round(i * last / max(1, most - 1)) for i in range(most)})
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(str(rows[i].get(key, "")) for key in COLUMNS) + " |"
              for i in chosen]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=Path, default=Path("build/tiny/state"))
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--rows", type=int, default=12, help="of the curve")
    args = parser.parse_args()
    run = json.loads((args.state / "resume.json").read_text())
    best = run["best"]
    print("## The run\n")
    print(f"{run['step']:,} steps in {run['seconds'] / 60:.1f} minutes; the kept weights are those "
          f"of step {best['step']:,}. "
          + ", ".join(f"{key} {run['args'][key]}" for key in SETTINGS) + ".\n")
    print("Bits per byte on validation and on some training windows, without dropout; the share of "
          "first drafts that are the model's own choice, on validation text.\n")
    print(curve(run["curve"], args.rows))
    if args.figures:
        print(figures_text(json.loads(args.figures.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
