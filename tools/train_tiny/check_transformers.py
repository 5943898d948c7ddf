#!/usr/bin/env python3
"""Compares an exported model's logits: transformers, this tool's model, and Reckon.

  tools/train_tiny/check_transformers.py [-m models/tiny] [--data build/tiny] [--reckon PROGRAM]

transformers (float32, eager attention, no cache) runs 512 tokens of each corpus's test part. This
tool's model must agree, and Reckon (reference numerics), through `reckon check-oracle` on a
recorded case in a temporary folder: logits of every position, 24 greedy tokens, and the MTP head,
which transformers leaves out, by this tool's model. Needs transformers 5.17.0, PyTorch and
safetensors. Exit code 1 where something differs by more than 2e-3.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import batches
import generate
from corpora import CORPORA
from selftest import TOLERANCE, load_folder

GREEDY = 24


def prompts_of(data: batches.Data, length: int) -> list[torch.Tensor]:
    return [torch.from_numpy(data.tokens(corpus, "test")[:length].astype(numpy.int64))
            for corpus in CORPORA]


@torch.no_grad()
def greedy(model, tokens: torch.Tensor) -> tuple[list[int], float]:
    """The continuation by full recompute, and the smallest lead of a choice over the next one."""
    margin, chosen = float("inf"), []
    for _ in range(GREEDY):
        best = model(tokens[None]).logits[0, -1].topk(2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        chosen.append(int(best.indices[0]))
        tokens = torch.cat((tokens, best.indices[:1]))
    return chosen, margin


@torch.no_grad()
def drafts_of(ours, tokens: torch.Tensor, following: int) -> dict[str, torch.Tensor]:
    """The MTP head behind every position but the last, and its drafts behind the prompt."""
    tokens = tokens[None]
    main = ours.hidden(tokens)
    hidden, _ = ours.draft(main[:, :-1], tokens[:, 1:])
    recorded = {"hidden": hidden[0], "logits": ours.head(hidden)[0],
                "next": torch.tensor([following])}
    hidden, earlier, drafts, logits = main, (), [], []
    tokens = torch.cat((tokens, recorded["next"][None]), 1)
    for depth in range(generate.DEPTHS):
        hidden, pair = ours.draft(hidden, tokens[:, depth + 1:], earlier)
        earlier += (pair,)
        logits.append(ours.head(hidden)[0, -1])
        drafts.append(int(logits[-1].argmax()))
        tokens = torch.cat((tokens, torch.tensor([[drafts[-1]]])), 1)
    recorded |= {"drafts": torch.tensor(drafts), "draft_logits": torch.stack(logits)}
    return recorded


@torch.no_grad()
def record(model, ours, prompts: list[torch.Tensor], folder: Path) -> float:
    """Writes a case as tests/golden/README.md describes them. Returns the largest difference
    between the two models' logits."""
    tensors, described, worst = {}, [], 0.0
    for index, tokens in enumerate(prompts):
        logits = model(tokens[None]).logits[0]
        worst = max(worst, float((ours(tokens[None])[0] - logits).abs().max()))
        chosen, margin = greedy(model, tokens)
        tensors |= {f"p{index}.tokens": tokens, f"p{index}.logits": logits,
                    f"p{index}.greedy": torch.tensor(chosen)}
        tensors |= {f"mtp.p{index}.{name}": value
                    for name, value in drafts_of(ours, tokens, chosen[0]).items()}
        described.append({"length": len(tokens), "min_top2_margin": margin})
    tensors = {name: (value if value.is_floating_point() else value.to(torch.int32)).contiguous()
               for name, value in tensors.items()}
    save_file(tensors, folder / "oracle.safetensors")
    (folder / "oracle.json").write_text(json.dumps({"prompts": described}))
    return worst


def check_tokenizer(folder: Path, prompts: list[torch.Tensor]) -> bool:
    """transformers' tokenizer makes the same ids of the text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return all(tokenizer.encode(tokenizer.decode(p[1:])) == p[1:].tolist() for p in prompts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", type=Path, default=Path("models/tiny"))
    parser.add_argument("--data", type=Path, default=Path("build/tiny"), help="data.py's folder")
    parser.add_argument("--reckon", default="build/release/reckon", help="the program")
    parser.add_argument("--tokens", type=int, default=512)
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    prompts = prompts_of(batches.Data(args.data / "data.npz"), args.tokens)
    same_ids = check_tokenizer(args.model, prompts)
    print(f"{'ok  ' if same_ids else 'FAIL'} tokenizer, by transformers")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            shutil.copyfile(args.model / file, folder / file)
        worst = record(model, load_folder(args.model), prompts, folder)
        print(f"{'ok  ' if worst <= TOLERANCE else 'FAIL'} {type(model).__name__} and this tool's "
              f"model, logits of {len(prompts)} times {args.tokens} tokens: {worst:.1e}")
        run = subprocess.run([args.reckon, "check-oracle", name, "--numerics", "reference"],
                             capture_output=True, text=True)
    print(run.stdout + run.stderr, end="")
    found = re.search(r"^pass: .*$", run.stdout, re.MULTILINE)
    return int(not (same_ids and worst <= TOLERANCE and run.returncode == 0 and found))


if __name__ == "__main__":
    sys.exit(main())
