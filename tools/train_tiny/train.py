#!/usr/bin/env python3
"""Trains the small model on tokens that data.py wrote.

  tools/train_tiny/train.py [--data build/tiny] [--state DIR] [--minutes 16] [--until SECONDS]

On an NVIDIA GPU matmuls are in bfloat16, layers are compiled, and a step is one CUDA graph; on a
CPU everything is float32. The number of steps is set once, from --minutes and the measured time of
a step, or by --steps; the learning rate rises, then falls to zero over them. --until ends this
process after so many seconds with its state saved; the same command goes on with it, from --state
or, where that is empty, from --carried. The weights with the lowest validation loss are kept.
Writes to --state (everything) and --portable (files under 16 MiB, see state.py). Seeded.
Exit codes: 0 finished, 3 stopped by --until before the last step.
"""
import argparse
import json
import math
import sys
import time
from pathlib import Path

import torch

import batches
import corpora
import losses
import state
from mean import MeanWeights
from model import Config, Tiny, initialise, parameters
from steps import Optimizers, Stepper

STOPPED = 3
REWARM_STEPS = 200  # after Adam's moments were lost
AVERAGE_EVERY = 10  # steps
CALIBRATION = (20, 60)  # steps between which a step is timed


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, default=Path("build/tiny"), help="folder of data.npz")
    add("--state", type=Path, default=Path("build/tiny/state"), help="where the run is kept")
    add("--carried", type=Path, help="portable files of an earlier process to go on from")
    add("--portable", type=Path, help="where portable files go (default: --state)")
    add("--start", type=Path, metavar="best.pt", help="weights of an earlier run to begin with")
    add("--minutes", type=float, default=16, help="of training in all, all processes together")
    add("--steps", type=int, help="in all, instead of --minutes")
    add("--until", type=float, default=math.inf, help="seconds of this process")
    add("--length", type=int, default=1024, help="tokens of a window")
    add("--batch", type=int, default=32, help="windows of a step")
    add("--prose", type=float, default=0.6, help="share of windows that are prose")
    add("--lr", type=float, default=3e-3, help="highest learning rate")
    add("--teacher", type=Path, nargs="+", default=[], metavar="DIR",
        help="best.pt and resume.json of earlier runs to learn from, beside the text")
    add("--teach", type=float, default=0.6, help="share of the loss that is against the teachers")
    add("--decay", type=float, default=1.0,
        help="share of the steps, at the end, over which the learning rate falls")
    add("--last-lr", type=float, default=0.0, help="learning rate of the last step")
    add("--average", type=float, default=0.0, help="share of the steps whose weights are averaged")
    add("--warmup", type=float, default=0.02, help="share of the steps")
    add("--weight-decay", type=float, default=0.15)
    add("--adamw", action="store_true", help="for matrices, too, instead of Muon")
    add("--dropout", type=float, default=0.1)
    add("--mtp", type=float, default=0.15, help="weight of the MTP layer's loss; 0: none")
    add("--soft", type=float, default=0.75,
        help="share of that loss against the model's own expectation")
    add("--clip", type=float, default=1.0, help="largest norm of the gradient")
    add("--validate-every", type=int, default=250, help="steps")
    add("--validation-windows", type=int, default=96, help="of each corpus at most")
    add("--save-every", type=float, default=60, help="seconds")
    add("--config", type=json.loads, default={}, metavar="JSON", help="keys of model.Config")
    add("--seed", type=int, default=1)
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--no-compile", action="store_true", help="layers op by op")
    add("--no-graph", action="store_true", help="without a CUDA graph")
    args = parser.parse_args()
    args.portable = args.portable or args.state
    return args


class Validator:
    """Bits per byte of held-out windows, and the acceptance of drafts there, on a copy of the model
    without dropout; and bits per byte of some windows of the training part, which tell how much is
    learnt by heart."""

    def __init__(self, data: batches.Data, args):
        self.device = args.device
        self.token_bytes = data.token_bytes.to(args.device)
        most = args.validation_windows
        self.windows = {
            (corpus, part): batches.in_order(data.tokens(corpus, part), args.length, count)
            for corpus in corpora.CORPORA
            for part, count in (("validation", most), ("train", max(1, most // 4)))}

    def __call__(self, model: Tiny, weights: dict[str, torch.Tensor]) -> dict[str, float]:
        """Of a model like this one with those weights."""
        plain = Tiny(model.config, 0.0, model.dtype).to(self.device).eval()
        plain.load_state_dict(weights)
        row = {}
        for (corpus, part), windows in self.windows.items():
            sums: dict[str, float] = {}
            for some in windows.split(16):
                losses.add(sums, losses.measure(plain, some.to(self.device), self.token_bytes))
            row[bits_name(corpus, part)] = sums["nats"] / math.log(2) / sums["bytes"]
            if part == "validation":
                row |= {f"{corpus} accepted {depth}": sums[f"accepted {depth}"]
                        / sums[f"drafted {depth}"] for depth in range(1, losses.DEPTHS + 1)}
        return row


def bits_name(corpus: str, part: str = "validation") -> str:
    return f"{corpus} {'' if part == 'validation' else part + ' '}bits per byte"


class Training:
    def __init__(self, args):
        self.args, self.began = args, time.monotonic()
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        self.data = batches.Data(args.data / "data.npz")
        self.windows = batches.TrainingWindows(self.data, args.length, args.batch, args.prose,
                                               args.seed)
        config = Config(**{"vocab_size": len(self.data.token_bytes), **args.config})
        dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
        self.model = Tiny(config, args.dropout, dtype)
        initialise(self.model, args.seed)
        if args.start:
            self.model.load_state_dict(torch.load(args.start, weights_only=True))
        self.teachers = losses.Teachers(
            [state.load_best(path, dtype).to(args.device) for path in args.teacher], args.teach)
        self.model.to(args.device).train()
        self.mean = MeanWeights(self.model)
        self.optimizer = Optimizers(self.model, args)
        self.run = {"step": 0, "steps": args.steps, "seconds": 0.0, "best": None, "curve": [],
                    "warm_from": 0, "config": config.__dict__,
                    "args": {k: str(v) for k, v in vars(args).items()}}
        self.best: dict = {}
        self.restore()
        self.seconds_before = self.run["seconds"]
        self.validator = Validator(self.data, args)
        self.saved_at = time.monotonic()
        print(f"{parameters(self.model):,} parameters, {self.windows.stream.numel():,} tokens, "
              f"{args.device}, from step {self.run['step']}", flush=True)

    def restore(self) -> None:
        args = self.args
        if (args.state / "full.pt").exists():
            self.run, self.best = state.load_full(args.state, self.model, self.optimizer, self.mean)
        elif args.carried and (args.carried / "resume.json").exists():
            self.run, self.best = state.load_portable(args.carried, self.model)
            self.run["warm_from"] = self.run["step"]
            torch.manual_seed(args.seed + self.run["step"])
        if args.steps:
            self.run["steps"] = args.steps

    def seconds(self) -> float:
        """Of training, earlier processes included."""
        return self.seconds_before + time.monotonic() - self.began

    def rate(self) -> float:
        """The learning rate of this step: up, level, and down in a line."""
        step, steps = self.run["step"], self.run["steps"]
        if steps is None:
            return self.args.lr * min(1.0, (step + 1) / 200)
        warm = max(1, round(self.args.warmup * steps))
        last, highest = self.args.last_lr, self.args.lr
        falling = max(1.0, min(self.args.decay * steps, steps - warm))
        rate = min(highest * (step + 1) / warm, highest,
                   last + (highest - last) * (steps - step) / falling)
        since = step - self.run["warm_from"]
        again = min(1.0, (since + 1) / REWARM_STEPS) if self.run["warm_from"] else 1.0
        return rate * again

    def go(self) -> int:
        stepper = Stepper(self.model, self.optimizer, self.windows, self.teachers, self.args)
        if self.args.device == "cuda" and not self.args.no_compile:
            self.prepare(stepper)
        timed_at = stats = None
        while self.run["steps"] is None or self.run["step"] < self.run["steps"]:
            self.optimizer.set_rate(self.rate())
            stats = stepper(self.windows.starts(self.run["step"]))
            self.run["step"] += 1
            if self.args.device == "cuda" and self.run["step"] % 10 == 0:
                torch.cuda.synchronize()  # keeps the clock below honest
            if self.run["steps"] is None and stepper.done in CALIBRATION:
                timed_at = self.calibrate(timed_at)
            if self.run["steps"] and self.averages() and self.run["step"] % AVERAGE_EVERY == 0:
                self.mean.add(self.model)
            if self.run["step"] % self.args.validate_every == 0:
                self.validate(stats)
            if time.monotonic() - self.began > self.args.until:
                self.save()
                return STOPPED
            if time.monotonic() - self.saved_at > self.args.save_every:
                self.save()
        if stats is not None and self.run["step"] % self.args.validate_every != 0:
            self.validate(stats)
        self.save()
        print(f"best: {json.dumps(self.run['best'])}", flush=True)
        return 0

    def averages(self) -> bool:
        return self.run["step"] > (1 - self.args.average) * self.run["steps"]

    def kept(self) -> dict[str, torch.Tensor]:
        """The weights that are validated: the mean, where there is one."""
        return self.mean.weights if self.mean.count else self.model.state_dict()

    def prepare(self, stepper: Stepper) -> None:
        """Compiles, with a step at a rate of zero, and puts back what that step changed."""
        weights = torch_copy(self.model.state_dict())
        kept = torch_copy(self.optimizer.state_dict())
        self.optimizer.set_rate(0.0)
        stepper.starts.copy_(self.windows.starts(self.run["step"]))
        stepper.compile()
        self.model.load_state_dict(weights)
        self.optimizer.forget()
        self.optimizer.load_state_dict(kept)
        torch.cuda.synchronize()
        print(f"compiled after {time.monotonic() - self.began:.0f} s", flush=True)

    def calibrate(self, timed_at: float | None) -> float:
        """Sets the number of steps from the time of some of them."""
        if self.args.device == "cuda":
            torch.cuda.synchronize()
        now = time.monotonic()
        if timed_at is None:
            return now
        a_step = (now - timed_at) / (CALIBRATION[1] - CALIBRATION[0])
        left = self.args.minutes * 60 - self.seconds()
        self.run["steps"] = self.run["step"] + max(1, int(0.93 * left / a_step))  # 7 %: validation
        tokens = self.args.batch * self.args.length
        print(f"{a_step * 1e3:.1f} ms a step, {tokens / a_step:,.0f} tokens/s: "
              f"{self.run['steps']} steps", flush=True)
        return now

    def validate(self, stats: torch.Tensor) -> None:
        measured = self.validator(self.model, self.kept())
        if not all(math.isfinite(value) for value in measured.values()):
            raise SystemExit(f"train.py: step {self.run['step']}: the weights are no numbers any "
                             f"more; what is saved is older")
        prose, code = self.windows.epochs(self.run["step"])
        names = ["train nats", *(f"draft {d} nats" for d in range(1, losses.DEPTHS + 1)), "norm"]
        row = {"step": self.run["step"], "seconds": round(self.seconds(), 1),
               "prose epochs": round(prose, 2), "code epochs": round(code, 2),
               "rate": float(f"{self.rate():.4g}"),
               **{name: round(value, 4) for name, value in zip(names, stats.tolist())},
               **{name: round(value, 4) for name, value in measured.items()}}
        self.run["curve"].append(row)
        score = sum(measured[bits_name(corpus)] for corpus in corpora.CORPORA)
        if self.run["best"] is None or score < self.run["best"]["score"]:
            self.run["best"] = {"score": score, **row}
            self.best = {k: v.detach().to(torch.bfloat16).cpu()
                         for k, v in self.kept().items()}
        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)

    def save(self) -> None:
        self.run["seconds"] = self.seconds()
        state.save_full(self.args.state, self.run, self.model, self.optimizer, self.best,
                        self.mean)
        state.save_portable(self.args.portable, self.run, self.model, self.best)
        self.saved_at = time.monotonic()


def torch_copy(value):
    """A deep copy of nested containers of tensors."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: torch_copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(torch_copy(item) for item in value)
    return value


def main() -> int:
    return Training(arguments()).go()


if __name__ == "__main__":
    sys.exit(main())
