"""What a training run keeps on disk.

full.pt: everything, for a run that goes on on the same machine.
resume.json, resume.N.pt, best.pt, curve.csv: what a machine's small quota of files carries home
(each file under 16 MiB): weights in float32 in parts, the best weights in bfloat16, and where the
run is. The optimiser's moments and the mean of the weights are left out; a run that goes on from
these warms up anew, briefly.
"""
import csv
import json
import os
from pathlib import Path

import torch

from model import Config, Tiny

PART_BYTES = 14_000_000


def save_atomically(value, path: Path) -> None:
    partial = path.with_suffix(".partial")
    torch.save(value, partial)
    os.replace(partial, path)


def save_full(folder: Path, run: dict, model, optimizer, best: dict, mean) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        rng["cuda"] = torch.cuda.get_rng_state()
    save_atomically({"run": run, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                     "best": best, "mean": mean.state_dict(), "rng": rng}, folder / "full.pt")


def load_full(folder: Path, model, optimizer, mean) -> tuple[dict, dict]:
    saved = torch.load(folder / "full.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    mean.load_state_dict(saved["mean"])
    torch.set_rng_state(saved["rng"]["cpu"])
    if torch.cuda.is_available() and "cuda" in saved["rng"]:
        torch.cuda.set_rng_state(saved["rng"]["cuda"])
    return saved["run"], saved["best"]


def parts_of(weights: dict) -> list[dict]:
    parts, size = [{}], 0
    for name, weight in weights.items():
        if size + weight.nbytes > PART_BYTES and parts[-1]:
            parts.append({})
            size = 0
        parts[-1][name] = weight.detach().cpu()
        size += weight.nbytes
    return parts


def save_portable(folder: Path, run: dict, model, best: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for index, part in enumerate(parts_of(model.state_dict())):
        save_atomically(part, folder / f"resume.{index}.pt")
    if best:
        save_atomically(best, folder / "best.pt")
    write_curve(folder / "curve.csv", run["curve"])
    (folder / "resume.json").write_text(json.dumps(run))


def load_portable(folder: Path, model) -> tuple[dict, dict]:
    run = json.loads((folder / "resume.json").read_text())
    weights = {}
    for path in sorted(folder.glob("resume.*.pt")):
        weights |= torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(weights)
    best = folder / "best.pt"
    return run, torch.load(best, map_location="cpu", weights_only=True) if best.exists() else {}


def load_best(folder: Path, dtype) -> Tiny:
    """The best model of a run, of whatever size, to be used and not trained."""
    run = json.loads((folder / "resume.json").read_text())
    model = Tiny(Config(**run["config"]), 0.0, dtype)
    model.load_state_dict(torch.load(folder / "best.pt", map_location="cpu", weights_only=True))
    return model.eval().requires_grad_(False)


def write_curve(path: Path, rows: list[dict]) -> None:
    if not rows:
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
