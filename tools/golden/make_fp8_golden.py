#!/usr/bin/env python3
"""Block FP8: the value of every code as PyPI ml_dtypes has it, blocks with ragged ends, and a tiny
checkpoint in two files with what the NumPy forward pass computes for its dequantised weights.

    make_fp8_golden.py --out tests/golden

quant/f8_e4m3.safetensors: `values` F32 [256], by code; `codes` U8 [2, 130, 200] and `scales` F32
[2, 2, 2] of two matrices, `weights` F32 [2, 130, 200], their products in float32.
"""

import argparse
import json
import pathlib
import sys

import ml_dtypes
import numpy as np

import safetensors_io
from dense_forward import DenseConfig, random_weights, record
from make_dense_cases import LENGTHS, SMALLEST_MARGIN, STEPS, _hf_config

BLOCK = 128
SEED = 16009
DIMS = dict(
    hidden_size=160,
    num_attention_heads=5,
    num_key_value_heads=1,
    head_dim=32,
    intermediate_size=272,
    num_hidden_layers=2,
    vocab_size=151,
)


def by_block(scales, shape):
    """A scale for each element of a matrix of `shape`."""
    return np.repeat(np.repeat(scales, BLOCK, -2), BLOCK, -1)[..., : shape[-2], : shape[-1]]


def dequantise(codes, scales):
    values = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    return values * by_block(scales, codes.shape).astype(np.float32)


def quantise(weights):
    """(codes, scales) of one matrix: the largest of each block becomes 448, the largest code."""
    rows, columns = weights.shape
    scales = np.empty((-(-rows // BLOCK), -(-columns // BLOCK)), np.float32)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            block = weights[i * BLOCK : (i + 1) * BLOCK, j * BLOCK : (j + 1) * BLOCK]
            scales[i, j] = np.float32(np.abs(block).max() / 448)
    scaled = (weights / by_block(scales, weights.shape)).astype(np.float32)
    return scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8), scales


def write(path, tensors):
    """tensors: name -> (type as safetensors names it, array of the raw elements)."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, array) in sorted(tensors.items()):
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_codes(path):
    rng = np.random.Generator(np.random.PCG64(SEED))
    values = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    codes = rng.integers(0, 256, (2, 130, 200)).astype(np.uint8)
    codes[codes % 128 == 127] = 0  # no NaN
    scales = rng.lognormal(-6, 2, (2, 2, 2)).astype(np.float32)
    write(
        path,
        {
            "values": ("F32", values),
            "codes": ("U8", codes),
            "scales": ("F32", scales),
            "weights": ("F32", dequantise(codes, scales)),
        },
    )


def write_case(folder):
    rng = np.random.Generator(np.random.PCG64(SEED))
    hf_config = _hf_config("llama", False, 10000.0, 1e-5, **DIMS)
    config = DenseConfig.from_hf(hf_config)
    weights, stored = {}, {}
    for name, value in random_weights(config, rng, 1.0).items():
        if "_proj" in name:
            codes, scales = quantise(value.astype(np.float32))
            if "down" in name:  # as some checkpoints have their scales
                scales = safetensors_io.bf16_values(safetensors_io.bf16_bits(scales)).astype(np.float32)
                stored[name + "_scale_inv"] = ("BF16", safetensors_io.bf16_bits(scales))
            else:
                stored[name + "_scale_inv"] = ("F32", scales)
            stored[name] = ("F8_E4M3", codes)
            weights[name] = dequantise(codes, scales)
        else:
            stored[name] = ("BF16", safetensors_io.bf16_bits(value))
            weights[name] = safetensors_io.bf16_values(safetensors_io.bf16_bits(value))
    prompts = [rng.integers(0, config.vocab, length) for length in LENGTHS]
    tensors, entries = record(weights, config, prompts, STEPS, hidden_of=3)
    margin = min(entry["min_top2_margin"] for entry in entries)
    if margin < SMALLEST_MARGIN:
        sys.exit(f"{folder.name}: a margin of {margin:.2e}; change the seed")

    folder.mkdir(parents=True, exist_ok=True)
    hf_config["quantization_config"] = {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "weight_block_size": [BLOCK, BLOCK],
    }
    (folder / "config.json").write_text(json.dumps(hf_config, indent=2) + "\n")
    files = [f"model-{i:05}-of-00002.safetensors" for i in (1, 2)]
    weight_map = {name: files["layers.1." in name] for name in sorted(stored)}
    for file in files:
        write(folder / file, {n: stored[n] for n in stored if weight_map[n] == file})
    size = sum(array.nbytes for _, array in stored.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    safetensors_io.save(folder / "oracle.safetensors", tensors)
    oracle = {
        "family": "llama",
        "seed": SEED,
        "generator": "tools/golden/make_fp8_golden.py",
        "numpy": np.__version__,
        "dtype": "float64 compute on weights dequantised in float32; argmax ties to the lower index",
        "prompts": entries,
        "save_pretrained_names": {n: list(w.shape) for n, w in sorted(weights.items())},
    }
    (folder / "oracle.json").write_text(json.dumps(oracle, indent=1) + "\n")
    print(f"{folder.name}: smallest margin {margin:.4f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    out = parser.parse_args().out
    write_codes(out / "quant" / "f8_e4m3.safetensors")
    write_case(out / "oracle" / "llama-fp8")


if __name__ == "__main__":
    main()
