#!/usr/bin/env python3
"""Checks the tool's own parts, on a CPU, in seconds.

  tools/train_tiny/selftest.py [--oracle DIR]

 - the chunked gated delta rule against the same position by position, results and gradients;
 - the trigram model's probabilities sum to 1;
 - with --oracle, a folder of recorded qwen3_5 cases (transformers 5.17.0): logits, and the MTP
   head's, over a prompt and along its own drafts; the decoder's against those. 2e-3 at most.
Needs PyTorch and safetensors. Exit code 1 where something differs.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy
import torch
from safetensors.torch import load_file

from decoder import Decoder
from delta import gated_delta_rule, gated_delta_rule_by_position
from model import Config, Tiny, unit
from trigram import Trigram

TOLERANCE = 2e-3


def delta_inputs(length: int, like: float) -> list[torch.Tensor]:
    """like: how alike all keys are, 0 to 1; 1 is the hardest system to solve."""
    generator = torch.Generator().manual_seed(length)
    draw = lambda *shape: torch.randn(2, length, 3, *shape, generator=generator)  # noqa: E731
    k = unit(like * torch.randn(32, generator=generator) + (1 - like) * draw(32))
    inputs = [unit(draw(32)) * 32 ** -0.5, k, draw(16), -torch.rand(2, length, 3) * 0.1 * (1 - like),
              torch.sigmoid(draw() + 6 * like)]
    return [x.requires_grad_() for x in inputs]


def largest_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(((a - b).abs().max() / b.abs().max().clamp(min=1)).detach())


def check_delta() -> float:
    worst = 0.0
    for length in (1, 5, 64, 200):
        for like in (0.0, 0.9, 1.0):
            inputs = delta_inputs(length, like)
            weights = torch.randn(2, length, 3, 16)
            results = []
            for rule in (gated_delta_rule, gated_delta_rule_by_position):
                out = rule(*inputs)
                results.append([out, *torch.autograd.grad((out * weights).sum(), inputs)])
            worst = max(worst, *(largest_difference(a, b) for a, b in zip(*results)))
    return worst


def check_trigram() -> float:
    draw = numpy.random.default_rng(1)
    tokens = (draw.integers(0, 40, 3000) * draw.integers(0, 2, 3000)).astype(numpy.uint16)
    model = Trigram(tokens, 48)
    pairs = [(0, 0), (0, 7), (7, 39), (45, 46), (39, 45)]  # the last are never seen
    return max(abs(model.distribution(*pair).sum() - 1) for pair in pairs)


@torch.no_grad()
def check_oracle(folder: Path) -> float:
    model = load_folder(folder)
    recorded = load_file(folder / "oracle.safetensors")
    worst = 0.0
    for prompt in range(6):
        logits = recorded[f"p{prompt}.logits"]
        got = model(recorded[f"p{prompt}.tokens"].long()[None])[0, -len(logits):]
        worst = max(worst, float((got - logits).abs().max()))
    tokens = recorded["p3.tokens"].long()[None]
    hidden = model.hidden(tokens)
    drafted, _ = model.draft(hidden[:, :-1], tokens[:, 1:])
    worst = max(worst, float((model.head(drafted)[0] - recorded["mtp.p3.logits"]).abs().max()))
    tokens = torch.cat((tokens, recorded["mtp.p3.next"].long()[None]), 1)
    earlier = ()
    for depth, (draft, logits) in enumerate(zip(recorded["mtp.p3.drafts"],
                                                recorded["mtp.p3.draft_logits"])):
        hidden, pair = model.draft(hidden, tokens[:, depth + 1:], earlier)
        earlier += (pair,)
        got = model.head(hidden)[0, -1]
        worst = max(worst, float((got - logits).abs().max()))
        tokens = torch.cat((tokens, draft.long().reshape(1, 1)), 1)
    return max(worst, by_position(model, tokens))


def by_position(model: Tiny, tokens: torch.Tensor) -> float:
    """The decoder's logits, position by position, against a pass over the whole."""
    decoder = Decoder(model, 1, tokens.shape[1], "cpu")
    logits = torch.stack([decoder(column) for column in tokens.unbind(1)], 1)
    return largest_difference(logits, model(tokens))


def load_folder(folder: Path) -> Tiny:
    """An exported folder (or a hub's, of this family), in float32."""
    model = Tiny(Config.of_hub(json.loads((folder / "config.json").read_text())))
    weights = {name: weight.float()
               for name, weight in load_file(folder / "model.safetensors").items()}
    model.load_state_dict(weights)
    return model.eval()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=Path, help="has qwen3_5-s0 and others like it")
    args = parser.parse_args()
    results = {"gated delta rule": (check_delta(), 1e-3), "trigram": (check_trigram(), 1e-9)}
    if args.oracle:
        for folder in sorted(args.oracle.glob("qwen3_5-s*")):
            results[folder.name] = (check_oracle(folder), TOLERANCE)
    for name, (difference, limit) in results.items():
        print(f"{'ok  ' if difference <= limit else 'FAIL'} {name}: {difference:.2e}, "
              f"limit {limit:.0e}")
    return int(any(difference > limit for difference, limit in results.values()))


if __name__ == "__main__":
    sys.exit(main())
