#!/usr/bin/env python3
"""Tiny GGUF files with random weights, and what the NumPy pass computes for them.

    make_tiny_gguf.py --corpus prose.txt[.xz] --out DIR

Each file gets a small byte-level BPE vocabulary trained on the corpus. Beside
NAME.gguf: NAME.oracle.safetensors (p<i>.tokens, p<i>.logits of the last 64
positions, p<i>.greedy [16], p0.hidden.<l>) on the dequantised weights with
float activations, and NAME.oracle.json with the prompts' texts.
"""

import argparse
import dataclasses
import importlib.metadata
import json
import lzma
import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import bpe
import safetensors_io
from dense_forward import DenseConfig, forward, random_weights, record

STEPS = 16
SMALLEST_MARGIN = 2e-3
VOCAB = 512
CORPUS_CHARS = 1_500_000

SMOLLM2_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHATML_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# GGUF name (under blk.<l>.) → Hugging Face name (under model.layers.<l>.)
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hf_name(name):
    fixed = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    }
    if name in fixed:
        return fixed[name]
    _, layer, stem, suffix = name.split(".")
    return f"model.layers.{layer}.{_LAYER_NAMES[stem]}.{suffix}"


def gguf_names(config):
    names = ["token_embd.weight"]
    stems = [s for s in _LAYER_NAMES if config.qk_norm or not s.endswith(("q_norm", "k_norm"))]
    names += [f"blk.{layer}.{stem}.weight" for layer in range(config.layers) for stem in stems]
    names += ["output_norm.weight"] + ([] if config.tied else ["output.weight"])
    return names


def interleave(matrix, heads):
    """Rows of q or k from halves (i, i + d/2) to neighbours (2i, 2i+1), as GGUF `llama` has them."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def train_tokens(corpus, pre, control, user_defined, special_first):
    """→ (tokens, merges, types) of a vocabulary of VOCAB tokens."""
    special = control + user_defined
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = bpe.pre_tokenizer(pre)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - len(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus.split("\n\n"), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    types = [1] * len(tokens)
    special_types = [bpe.CONTROL] * len(control) + [bpe.USER_DEFINED] * len(user_defined)
    if special_first:
        return special + tokens, merges, special_types + types
    return tokens + special, merges, types + special_types


@dataclasses.dataclass(frozen=True)
class File:
    name: str
    arch: str
    seed: int
    config: DenseConfig  # of the GGUF rows: `interleaved` for llama
    embedding_std: float
    types: dict  # GGUF name stem (or the whole name without .weight) → type; norms are F32
    pre: str
    control: list
    user_defined: list
    special_first: bool
    template: str | None
    context: int
    version: int = 3
    alignment: int | None = None
    minimal: bool = False  # leave out what a reader has defaults for


FILES = [
    File(
        name="tiny-llama-mixed",
        arch="llama",
        seed=6401,
        config=DenseConfig(
            layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=160, vocab=VOCAB,
            rope_base=10000.0, eps=1e-5, tied=True, qk_norm=False, interleaved=True,
        ),
        embedding_std=0.4,
        types={
            "token_embd": Type.Q8_0,
            "attn_q": Type.Q4_1, "attn_k": Type.Q4_1, "attn_v": Type.Q4_1, "attn_output": Type.Q4_1,
            "blk.0.ffn_gate": Type.F16, "blk.0.ffn_up": Type.BF16, "blk.0.ffn_down": Type.Q8_0,
            "blk.1.ffn_gate": Type.Q8_0, "blk.1.ffn_up": Type.F16, "blk.1.ffn_down": Type.BF16,
        },
        pre="smollm",
        control=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        user_defined=[],
        special_first=True,
        template=SMOLLM2_TEMPLATE,
        context=512,
    ),
    File(
        name="tiny-qwen3",
        arch="qwen3",
        seed=9601,
        config=DenseConfig(
            layers=2, hidden=96, heads=4, kv_heads=2, head_dim=32, intermediate=224, vocab=VOCAB,
            rope_base=1000000.0, eps=1e-6, tied=False, qk_norm=True,
        ),
        embedding_std=1.0,
        types={
            "token_embd": Type.Q4_1, "output": Type.Q8_0,
            "attn_q": Type.Q8_0, "attn_k": Type.Q4_1, "attn_v": Type.F32, "attn_output": Type.Q8_0,
            "ffn_gate": Type.Q4_1, "ffn_up": Type.Q4_1, "ffn_down": Type.Q8_0,
        },
        pre="qwen2",
        control=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        user_defined=["<think>", "</think>"],
        special_first=False,
        template=CHATML_TEMPLATE,
        context=1024,
        alignment=64,
    ),
    File(
        name="tiny-llama-v2",
        arch="llama",
        seed=3202,
        config=DenseConfig(
            layers=1, hidden=32, heads=2, kv_heads=2, head_dim=16, intermediate=64, vocab=VOCAB,
            rope_base=10000.0, eps=1e-5, tied=False, qk_norm=False, interleaved=True,
        ),
        embedding_std=1.0,
        types={
            "token_embd": Type.F16, "output": Type.F16,
            "attn_q": Type.F32, "attn_k": Type.F32, "attn_v": Type.Q8_0, "attn_output": Type.Q4_1,
            "ffn_gate": Type.F32, "ffn_up": Type.F16, "ffn_down": Type.Q8_0,
        },
        pre="smollm",
        control=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        user_defined=[],
        special_first=True,
        template=None,
        context=256,
        version=2,
        minimal=True,
    ),
]  # fmt: skip


def type_of(file, name):
    stem = name.removesuffix(".weight")
    if stem.endswith("norm"):
        return Type.F32
    return file.types[stem] if stem in file.types else file.types[stem.rsplit(".", 1)[-1]]


def write_metadata(writer, file, tokens, merges, types):
    config = file.config
    writer.add_name(file.name)
    if file.alignment:
        writer.add_custom_alignment(file.alignment)
    writer.add_context_length(file.context)
    writer.add_embedding_length(config.hidden)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.intermediate)
    writer.add_head_count(config.heads)
    writer.add_layer_norm_rms_eps(config.eps)
    if not file.minimal:
        writer.add_head_count_kv(config.kv_heads)
        writer.add_rope_freq_base(config.rope_base)
        writer.add_vocab_size(config.vocab)
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        if file.arch == "llama":
            writer.add_rope_dimension_count(config.head_dim)
        else:
            writer.add_key_length(config.head_dim)
            writer.add_value_length(config.head_dim)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(file.pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    start, end = tokens.index("<|im_start|>"), tokens.index("<|im_end|>")
    text_end = tokens.index("<|endoftext|>")
    writer.add_bos_token_id(start if file.arch == "llama" else text_end)
    writer.add_eos_token_id(end)
    if not file.minimal:
        writer.add_pad_token_id(text_end)
        writer.add_add_bos_token(False)
    if file.template is not None:
        writer.add_chat_template(file.template)


def make(file, corpus, out):
    config = file.config
    rng = np.random.Generator(np.random.PCG64(file.seed))
    tokens, merges, types = train_tokens(corpus, file.pre, file.control, file.user_defined, file.special_first)
    assert len(tokens) == config.vocab

    path = out / f"{file.name}.gguf"
    writer = gguf.GGUFWriter(path, file.arch)
    write_metadata(writer, file, tokens, merges, types)
    weights = random_weights(config, rng, file.embedding_std)  # Hugging Face row order
    for name in gguf_names(config):
        matrix = weights[hf_name(name)]
        if config.interleaved and name.endswith(("attn_q.weight", "attn_k.weight")):
            matrix = interleave(matrix, config.heads if "attn_q" in name else config.kv_heads)
        kind = type_of(file, name)
        writer.add_tensor(name, gguf.quants.quantize(matrix, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if file.version != 3:  # versions 2 and 3 differ in this number only, on little-endian machines
        with open(path, "r+b") as stream:
            stream.seek(4)
            stream.write(file.version.to_bytes(4, "little"))

    # From here on, what the file holds.
    reader = gguf.GGUFReader(path)
    stored = {}
    for tensor in reader.tensors:
        assert tensor.tensor_type == type_of(file, tensor.name)
        value = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        stored[hf_name(tensor.name)] = value.astype(np.float32)
    tokenizer = bpe.from_gguf(reader)
    paragraphs = [p for p in corpus.split("\n\n") if 150 < len(p) < 200]
    texts = [
        paragraphs[int(rng.integers(len(paragraphs)))],
        "<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n"
        + ("<think>\n\n</think>\n\n" if file.user_defined else ""),
    ]
    prompts = [tokenizer.encode(text).ids for text in texts]
    tensors, entries = record(stored, config, prompts, STEPS, hidden_of=0)
    for i, entry in enumerate(entries):
        if entry["min_top2_margin"] < SMALLEST_MARGIN:
            sys.exit(f"{file.name}: prompt {i} has a margin of {entry['min_top2_margin']:.2e}; change the seed")

    if config.interleaved:  # permuted rows with neighbouring pairs = plain rows with halves
        permuted = {}
        for name, value in weights.items():
            heads = {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.split(".")[-2])
            permuted[name] = interleave(value, heads) if heads else value
        plain = dataclasses.replace(config, interleaved=False)
        a, b = (forward(w, c, prompts[0])[0] for w, c in ((permuted, config), (weights, plain)))
        assert np.abs(a - b).max() < 1e-9

    safetensors_io.save(out / f"{file.name}.oracle.safetensors", tensors)
    oracle = {
        "family": file.arch,
        "seed": file.seed,
        "generator": "tools/golden/make_tiny_gguf.py",
        "numpy": np.__version__,
        "gguf": importlib.metadata.version("gguf"),
        "tokenizers": importlib.metadata.version("tokenizers"),
        "dtype": "float64 compute on dequantised weights, float activations; argmax ties to the lower index",
        "prompts": [{"text": text, **entry} for text, entry in zip(texts, entries)],
    }
    (out / f"{file.name}.oracle.json").write_text(json.dumps(oracle, indent=1) + "\n")
    margin = min(e["min_top2_margin"] for e in entries)
    print(
        f"{file.name}: {path.stat().st_size} bytes, prompts of {[len(p) for p in prompts]} tokens, smallest margin "
        f"{margin:.4f}, logit std {[round(e['logit_std'], 2) for e in entries]}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    opener = lzma.open if arguments.corpus.suffix == ".xz" else open
    with opener(arguments.corpus, "rt", encoding="utf-8", newline="") as stream:
        corpus = stream.read(CORPUS_CHARS)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        make(file, corpus, arguments.out)


if __name__ == "__main__":
    main()
