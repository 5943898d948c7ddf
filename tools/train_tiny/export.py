#!/usr/bin/env python3
"""Writes the trained model as a Hugging Face folder.

  tools/train_tiny/export.py [--data build/tiny] [--state DIR] [-o models/tiny]
  tools/train_tiny/export.py --card [--figures FILE] ...    the model card alone

model.safetensors (bfloat16, names as on the hub, the MTP layer under mtp.*), config.json,
tokenizer.json, tokenizer_config.json, generation_config.json and README.md, the model card, with
figures that evaluate.py --json wrote. Needs PyTorch and safetensors. Exit code 1 where the weights
are over the limits (7.5 million parameters, 16 MB).
"""
import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from card import card
from model import Config, Tiny

MOST_PARAMETERS = 7_500_000
MOST_BYTES = 16_000_000
END = 0  # the id of <|endoftext|>


def weights_of(state: Path, config: Config) -> dict[str, torch.Tensor]:
    """The best weights, checked to be those of the config."""
    weights = torch.load(state / "best.pt", map_location="cpu", weights_only=True)
    Tiny(config).load_state_dict(weights)
    return {name: weight.to(torch.bfloat16).contiguous() for name, weight in weights.items()}


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_model(run: dict, args) -> str | None:
    """Returns what is wrong, if something is."""
    config = Config(**run["config"])
    weights = weights_of(args.state, config)
    count = sum(weight.numel() for weight in weights.values())
    if count > MOST_PARAMETERS:
        return f"{count:,} parameters; expected {MOST_PARAMETERS:,} at most"
    path = args.out / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    if path.stat().st_size > MOST_BYTES:
        return f"{path} has {path.stat().st_size:,} bytes; expected {MOST_BYTES:,} at most"
    write_json(args.out / "config.json", config.hub(END))
    write_json(args.out / "generation_config.json", {"eos_token_id": END})
    write_json(args.out / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>",
        "bos_token": None, "add_bos_token": False, "clean_up_tokenization_spaces": False,
        "model_max_length": config.max_position_embeddings})
    shutil.copyfile(args.data / "tokenizer.json", args.out / "tokenizer.json")
    print(f"{path}: {count:,} parameters, {path.stat().st_size:,} bytes")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("build/tiny"), help="data.py's folder")
    parser.add_argument("--state", type=Path, default=Path("build/tiny/state"),
                        help="folder of best.pt and resume.json")
    parser.add_argument("-o", "--out", type=Path, default=Path("models/tiny"))
    parser.add_argument("--card", action="store_true", help="write README.md alone")
    parser.add_argument("--figures", type=Path, help="what evaluate.py --json wrote")
    args = parser.parse_args()
    run = json.loads((args.state / "resume.json").read_text())
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.card and (problem := write_model(run, args)):
        print(f"export.py: {problem}", file=sys.stderr)
        return 1
    data = json.loads((args.data / "data.json").read_text())
    figures = json.loads(args.figures.read_text()) if args.figures else None
    (args.out / "README.md").write_text(card(run, data, figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
