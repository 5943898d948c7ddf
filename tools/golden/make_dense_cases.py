#!/usr/bin/env python3
"""Tiny dense checkpoints with odd shapes, and what a NumPy forward pass computes for them.

    make_dense_cases.py --validate DIR...   the pass against recorded transformers results
    make_dense_cases.py --out DIR           write the cases

A case has the folder layout of the other recorded cases: config.json,
model.safetensors (bfloat16), oracle.safetensors, oracle.json; six prompts.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

import safetensors_io
from dense_forward import DenseConfig, random_weights, record

LENGTHS = (1, 2, 17, 48, 131, 300)
STEPS = 24
# Below this a different summation order may pick the other token; choose another seed instead.
SMALLEST_MARGIN = 2e-3


def _hf_config(model_type, tied, theta, eps, **dims):
    config = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "max_position_embeddings": 2048,
        "model_type": model_type,
        "pad_token_id": None,
        "rms_norm_eps": eps,
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "tie_word_embeddings": tied,
        "use_cache": True,
        **dims,
    }
    if model_type == "llama":
        config.update(mlp_bias=False, pretraining_tp=1)
    elif model_type == "gemma3_text":
        del config["hidden_act"]
        config.update(
            hidden_activation="gelu_pytorch_tanh",
            attn_logit_softcapping=None,
            final_logit_softcapping=None,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            query_pre_attn_scalar=20,
            rope_parameters={
                "full_attention": {"rope_theta": theta, "rope_type": "default"},
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
            },
            sliding_window=37,
            use_bidirectional_attention=False,
        )
    else:
        layers = dims["num_hidden_layers"]
        config.update(
            layer_types=["full_attention"] * layers,
            max_window_layers=28,
            sliding_window=None,
            use_sliding_window=False,
        )
    return dict(sorted(config.items()))


_H48 = dict(
    hidden_size=48,
    num_attention_heads=3,
    num_key_value_heads=1,
    head_dim=16,
    intermediate_size=112,
    num_hidden_layers=2,
    vocab_size=251,
)
_H80 = dict(
    hidden_size=80,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=24,
    intermediate_size=176,
    num_hidden_layers=2,
    vocab_size=203,
)
_H56 = dict(
    hidden_size=56,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=12,
    intermediate_size=104,
    num_hidden_layers=2,
    vocab_size=211,
)
_H64 = dict(
    hidden_size=64,
    num_attention_heads=4,
    num_key_value_heads=1,
    head_dim=24,
    intermediate_size=136,
    num_hidden_layers=3,
    vocab_size=227,
)

# name → (seed, embedding std, config). A tied embedding is smaller, so that logits have a std of about 3.
CASES = {
    "llama-h48-tied": (4801, 0.4, _hf_config("llama", True, 10000.0, 1e-5, **_H48)),
    "llama-h48-untied": (4802, 1.0, _hf_config("llama", False, 500000.0, 1e-6, **_H48)),
    "qwen2-h56": (5602, 1.0, _hf_config("qwen2", False, 1000000.0, 1e-6, **_H56)),
    "gemma3-h64": (6401, 0.15, _hf_config("gemma3_text", True, 1000000.0, 1e-6, **_H64)),
    "qwen3-h80": (8001, 0.4, _hf_config("qwen3", True, 1000000.0, 1e-6, **_H80)),
}


def make_case(name, out):
    seed, embedding_std, hf_config = CASES[name]
    rng = np.random.Generator(np.random.PCG64(seed))
    config = DenseConfig.from_hf(hf_config)
    weights = random_weights(config, rng, embedding_std)
    # The pass must see what the file holds.
    weights = {n: safetensors_io.bf16_values(safetensors_io.bf16_bits(w)) for n, w in weights.items()}
    prompts = [rng.integers(0, config.vocab, length) for length in LENGTHS]
    tensors, entries = record(weights, config, prompts, STEPS, hidden_of=3)
    for i, entry in enumerate(entries):
        if entry["min_top2_margin"] < SMALLEST_MARGIN:
            sys.exit(f"{name}: prompt {i} has a margin of {entry['min_top2_margin']:.2e}; change the seed")

    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(hf_config, indent=2) + "\n")
    safetensors_io.save(folder / "model.safetensors", weights, bf16=set(weights), metadata={"format": "pt"})
    safetensors_io.save(folder / "oracle.safetensors", tensors)
    oracle = {
        "family": hf_config["model_type"],
        "seed": seed,
        "generator": "tools/golden/make_dense_cases.py",
        "numpy": np.__version__,
        "dtype": "float64 compute on bfloat16 weights; argmax ties to the lower index",
        "prompts": entries,
        "save_pretrained_names": {n: list(w.shape) for n, w in sorted(weights.items())},
    }
    (folder / "oracle.json").write_text(json.dumps(oracle, indent=1) + "\n")
    margin = min(e["min_top2_margin"] for e in entries)
    size = sum(f.stat().st_size for f in folder.iterdir())
    std = ", ".join(f"{e['logit_std']:.2f}" for e in entries)
    print(f"{name}: smallest margin {margin:.4f}, logit std {std}, {size} bytes")


def validate(folder):
    """Compares the NumPy pass with a recorded case; returns whether it agrees."""
    hf_config = json.loads((folder / "config.json").read_text())
    config = DenseConfig.from_hf(hf_config)
    weights = safetensors_io.load(folder / "model.safetensors")
    recorded = safetensors_io.load(folder / "oracle.safetensors")
    prompts = [recorded[f"p{i}.tokens"] for i in range(len(LENGTHS))]
    tensors, entries = record(weights, config, prompts, STEPS, hidden_of=3)
    if set(tensors) != set(recorded):
        print(f"{folder.name}: tensor names differ: {sorted(set(tensors) ^ set(recorded))}")
        return False
    worst = {"logits": 0.0, "hidden": 0.0}
    good = True
    for name, value in tensors.items():
        kind = name.split(".")[1]
        if kind in worst:
            worst[kind] = max(worst[kind], float(np.abs(value - recorded[name]).max()))
        elif not np.array_equal(value, recorded[name]):
            print(f"{folder.name}: {name} differs")
            good = False
    good = good and max(worst.values()) <= 2e-3
    margin = min(e["min_top2_margin"] for e in entries)
    print(
        f"{folder.name}: {'agrees' if good else 'DISAGREES'}; largest difference of logits "
        f"{worst['logits']:.2e}, of hidden states {worst['hidden']:.2e}; smallest margin {margin:.4f}"
    )
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", nargs="+", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--case", choices=sorted(CASES), action="append", help="only this case")
    arguments = parser.parse_args()
    if not arguments.validate and not arguments.out:
        parser.error("give --validate or --out")
    if arguments.validate and not all([validate(folder) for folder in arguments.validate]):
        return 1
    if arguments.out:
        for name in arguments.case or CASES:
            make_case(name, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
