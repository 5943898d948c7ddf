#!/usr/bin/env python3
"""Write a GGUF file of a `llama` model with random weights, to measure speed on.

The tokenizer and its vocabulary are copied from another GGUF file, so that every engine can open
the result. Codes are uniform random bytes; scales are such that activations stay of order one.
As in files from llama-quantize, the token embedding (which is the head, too) is Q6_K.

    make_model.py --like smollm2.gguf --type q4_k 1b-q4_k.gguf

Needs the PyPI package gguf.
"""

import argparse
import sys

try:
    import gguf
    import numpy as np
except ModuleNotFoundError as missing:
    sys.exit(f"make_model.py needs the PyPI package gguf: {missing}")

DEVIATION = 0.02  # of a weight


def halves(blocks: np.ndarray, offset: int, value: float) -> None:
    blocks[:, offset : offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)


def q4_0(blocks: np.ndarray) -> None:  # 16 codes of deviation 4.6
    halves(blocks, 0, DEVIATION / 4.6)


def q4_1(blocks: np.ndarray) -> None:
    halves(blocks, 0, DEVIATION / 4.6)
    halves(blocks, 2, -7.5 * DEVIATION / 4.6)


def q4_k(blocks: np.ndarray) -> None:  # part scales and minima of 32 out of 0...63
    blocks[:, 4:12] = 32
    blocks[:, 12:16] = 0
    halves(blocks, 0, DEVIATION / 4.6 / 32)
    halves(blocks, 2, 7.5 * DEVIATION / 4.6 / 32)


def q6_k(blocks: np.ndarray) -> None:  # 64 codes of deviation 18.5, part scales of 64
    blocks[:, 192:208] = 64
    halves(blocks, 208, DEVIATION / 18.5 / 64)


TYPES = {
    "q4_0": (gguf.GGMLQuantizationType.Q4_0, gguf.LlamaFileType.MOSTLY_Q4_0, q4_0),
    "q4_1": (gguf.GGMLQuantizationType.Q4_1, gguf.LlamaFileType.MOSTLY_Q4_1, q4_1),
    "q4_k": (gguf.GGMLQuantizationType.Q4_K, gguf.LlamaFileType.MOSTLY_Q4_K_S, q4_k),
    "q6_k": (gguf.GGMLQuantizationType.Q6_K, gguf.LlamaFileType.MOSTLY_Q6_K, q6_k),
}


def random_matrix(rng: np.random.Generator, kind: str, n: int, k: int) -> np.ndarray:
    type_, _, set_scales = TYPES[kind]
    weights, size = gguf.GGML_QUANT_SIZES[type_]
    blocks = rng.integers(0, 256, (n * k // weights, size), np.uint8)
    set_scales(blocks)
    return blocks.reshape(n, k // weights * size)


def copy_tokenizer(source: gguf.GGUFReader, writer: gguf.GGUFWriter) -> int:
    """Returns the number of tokens."""
    tokens = 0
    for name, field in source.fields.items():
        if not name.startswith("tokenizer."):
            continue
        value = field.contents()
        if name == "tokenizer.ggml.tokens":
            tokens = len(value)
        sub_type = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(name, value, field.types[0], sub_type)
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output")
    parser.add_argument("--like", required=True, help="GGUF file whose tokenizer is copied")
    parser.add_argument("--type", choices=sorted(TYPES), default="q4_0", help="of the layers")
    parser.add_argument("--layers", type=int, default=16, help="(%(default)s)")
    parser.add_argument("--hidden", type=int, default=2048, help="(%(default)s)")
    parser.add_argument("--mlp", type=int, default=8192, help="(%(default)s)")
    parser.add_argument("--heads", type=int, default=32, help="(%(default)s)")
    parser.add_argument("--kv-heads", type=int, default=8, help="(%(default)s)")
    options = parser.parse_args()

    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(options.output, "llama")
    tokens = copy_tokenizer(gguf.GGUFReader(options.like), writer)
    head = options.hidden // options.heads
    writer.add_context_length(8192)
    writer.add_embedding_length(options.hidden)
    writer.add_block_count(options.layers)
    writer.add_feed_forward_length(options.mlp)
    writer.add_head_count(options.heads)
    writer.add_head_count_kv(options.kv_heads)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(tokens)
    writer.add_file_type(TYPES[options.type][1])

    weights = 0

    def add(name: str, kind: str, n: int, k: int) -> None:
        nonlocal weights
        weights += n * k
        data = random_matrix(rng, kind, n, k)
        writer.add_tensor(name + ".weight", data, raw_dtype=TYPES[kind][0])

    def add_norm(name: str) -> None:
        writer.add_tensor(name + ".weight", np.ones(options.hidden, np.float32))

    kv_width = options.kv_heads * head
    add("token_embd", "q6_k", tokens, options.hidden)
    add_norm("output_norm")
    for layer in range(options.layers):
        prefix = f"blk.{layer}."
        add_norm(prefix + "attn_norm")
        add_norm(prefix + "ffn_norm")
        for name, n, k in (
            ("attn_q", options.hidden, options.hidden),
            ("attn_k", kv_width, options.hidden),
            ("attn_v", kv_width, options.hidden),
            ("attn_output", options.hidden, options.hidden),
            ("ffn_gate", options.mlp, options.hidden),
            ("ffn_up", options.mlp, options.hidden),
            ("ffn_down", options.hidden, options.mlp),
        ):
            add(prefix + name, options.type, n, k)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{options.output}: {weights / 1e9:.2f} billion weights in matrices")


if __name__ == "__main__":
    main()
