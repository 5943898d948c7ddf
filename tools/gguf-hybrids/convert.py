#!/usr/bin/env python3
"""Converts oracle cases of hybrids to GGUF with llama.cpp's own converter.

  tools/gguf-hybrids/convert.py --llama-cpp SOURCE --out OUT [--outtype TYPE] CASE...

SOURCE is llama.cpp's source tree: vendor/llama.cpp of the sdist of PyPI's llama-cpp-python 0.3.36. A
CASE is a folder like tests/golden/oracle/qwen3_5-s0. It is copied with what the converter asks for
beyond it, an architecture's name and a byte-level tokenizer, and becomes OUT/NAME.gguf (f32 unless
--outtype says otherwise) with its recorded results beside it: NAME.oracle.json and
NAME.oracle.safetensors, so that `reckon check-oracle OUT/NAME.gguf` compares it.

The converter knows pre-tokenizers by what they make of one text, which none of a small vocabulary
can; it is told the name instead. Nothing else of it is changed.

Needs torch, transformers 5.17.0, safetensors and tokenizers.
"""
import argparse
import json
import pathlib
import runpy
import shutil
import sys
import tempfile

ARCHITECTURES = {
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "qwen3_next": "Qwen3NextForCausalLM",
}
PRE_TOKENIZERS = {"qwen3_next": "qwen2"}  # of the others: qwen35
NEVER_IN_UTF8 = (0xC0, 0xC1, 0xFF)  # their places hold merged tokens and the end of text
MERGES = [("Ġ", "t"), ("h", "e")]
END_OF_TEXT = "<|endoftext|>"


def byte_alphabet() -> list[str]:
    """The characters that stand for bytes 0 to 255 in byte-level vocabularies."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(others)) for b in range(256)]


def write_tokenizer(folder: pathlib.Path, size: int) -> None:
    """Every byte of UTF-8, two merges and an end of text: 256 tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = byte_alphabet()
    tokens = [c for b, c in enumerate(alphabet) if b not in NEVER_IN_UTF8]
    tokens += [a + b for a, b in MERGES]
    if size < len(tokens) + 1:
        sys.exit(f"{folder.name}: a vocabulary of {size}; expected {len(tokens) + 1} or more")
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TEXT}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def prepare(case: pathlib.Path, folder: pathlib.Path) -> dict:
    """The folder as the converter takes it; its configuration."""
    config = json.loads((case / "config.json").read_text())
    config["architectures"] = [ARCHITECTURES[config["model_type"]]]
    # The converter looks for it here, transformers leaves it out.
    if any(name.startswith("mtp.") for name in tensor_names(case)):
        config.setdefault("mtp_num_hidden_layers", 1)
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(case / "model.safetensors", folder)
    write_tokenizer(folder, config["vocab_size"])
    return config


def tensor_names(case: pathlib.Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(case / "model.safetensors", "np") as file:
        return list(file.keys())


def convert(source: pathlib.Path, case: pathlib.Path, out: pathlib.Path, outtype: str) -> None:
    """Runs the converter on one case."""
    sys.path[:0] = [str(source), str(source / "gguf-py")]
    from conversion import base

    gguf = out / f"{case.name}.gguf"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / case.name
        folder.mkdir()
        config = prepare(case, folder)
        name = PRE_TOKENIZERS.get(config["model_type"], "qwen35")
        base.TextModel.get_vocab_base_pre = lambda self, tokenizer: name
        script = str(source / "convert_hf_to_gguf.py")
        sys.argv = [script, str(folder), "--outfile", str(gguf), "--outtype", outtype]
        runpy.run_path(script, run_name="__main__")
    for kind in ("json", "safetensors"):
        shutil.copy(case / f"oracle.{kind}", out / f"{case.name}.oracle.{kind}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--llama-cpp", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--outtype", default="f32")
    parser.add_argument("cases", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for case in arguments.cases:
        convert(arguments.llama_cpp.resolve(), case, arguments.out, arguments.outtype)


if __name__ == "__main__":
    main()
