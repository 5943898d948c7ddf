#!/usr/bin/env python3
"""Trains the tokenizer and writes the corpora as tokens.

  tools/train_tiny/data.py --prose FILE [--stdlib DIR] [-o build/tiny]

Writes tokenizer.json, data.npz (uint16 tokens "CORPUS.PART", and "token_bytes": the bytes of each
token's text) and data.json (what went in: sizes, documents, hashes). Needs tokenizers and numpy;
the same inputs and seed give the same files. Exit code 1 where a corpus is missing.
"""
import argparse
import hashlib
import json
import sys
import sysconfig
from pathlib import Path

import numpy
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import corpora

END = "<|endoftext|>"
# Qwen 3.5's, which Reckon knows (src/formats/split_pattern.h).
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
         r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def train_tokenizer(documents: dict[str, list[corpora.Document]], size: int) -> Tokenizer:
    """Byte-level BPE on the training parts, the same number of bytes of each corpus."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[AddedToken(END, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    texts = {corpus: [d.text for d in some if d.part == "train"]
             for corpus, some in documents.items()}
    budget = min(sum(map(len, some)) for some in texts.values())
    tokenizer.train_from_iterator(
        (text for some in texts.values() for text in up_to(some, budget)), trainer)
    if tokenizer.get_vocab_size() != size:
        raise ValueError(f"the tokenizer has {tokenizer.get_vocab_size()} tokens; expected {size}")
    return tokenizer


def up_to(texts: list[str], budget: int) -> list[str]:
    """Texts from all over the list, `budget` characters in all at most."""
    step = max(1, round(sum(map(len, texts)) / budget * 16))  # sixteenths that are kept
    chosen, size = [], 0
    for index, text in enumerate(texts):
        if index * 16 % step >= 16 or size + len(text) > budget:
            continue
        chosen.append(text)
        size += len(text)
    return chosen


def token_bytes(tokenizer: Tokenizer) -> numpy.ndarray:
    """Bytes of each token's text; 0 of the end of a document."""
    sizes = [len(tokenizer.id_to_token(i)) for i in range(tokenizer.get_vocab_size())]
    sizes[tokenizer.token_to_id(END)] = 0
    return numpy.array(sizes, numpy.uint8)  # a character of a byte-level token is a byte


def encode(tokenizer: Tokenizer, documents: list[corpora.Document], part: str) -> numpy.ndarray:
    """Each document behind an end-of-text token, but those that go on with the one before."""
    end = tokenizer.token_to_id(END)
    chosen = [document for document in documents if document.part == part]
    ids: list[int] = []
    for document, encoding in zip(chosen, tokenizer.encode_batch([d.text for d in chosen])):
        if not document.follows:
            ids.append(end)
        ids.extend(encoding.ids)
    return numpy.array(ids + [end], numpy.uint16)


def describe(documents: list[corpora.Document], arrays: dict, corpus: str) -> dict:
    parts = {}
    for part in corpora.PARTS:
        chosen = [d for d in documents if d.part == part]
        parts[part] = {
            "documents": len(chosen), "bytes": sum(d.size for d in chosen),
            "tokens": int(arrays[f"{corpus}.{part}"].size),
            "sha256": hashlib.sha256("".join(d.text for d in chosen).encode()).hexdigest()}
        if part != "train":
            parts[part]["names"] = [d.name for d in chosen]
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prose", type=Path, required=True, help="novels, .txt or .txt.xz")
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")),
                        help="the standard library's folder (default: this Python's)")
    parser.add_argument("-o", "--out", type=Path, default=Path("build/tiny"))
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--held-out", type=float, default=0.03,
                        help="share of bytes for validation, and for test (default 0.03)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for path in (args.prose, args.stdlib):
        if not path.exists():
            print(f"data.py: {path} does not exist", file=sys.stderr)
            return 1
    documents = corpora.load(args.prose, args.stdlib, args.held_out, args.seed)
    tokenizer = train_tokenizer(documents, args.vocabulary)
    arrays = {f"{corpus}.{part}": encode(tokenizer, documents[corpus], part)
              for corpus in corpora.CORPORA for part in corpora.PARTS}
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(args.out / "tokenizer.json"), pretty=False)
    numpy.savez_compressed(args.out / "data.npz", token_bytes=token_bytes(tokenizer), **arrays)
    summary = {"seed": args.seed, "vocabulary": args.vocabulary, "python": sys.version.split()[0],
               **{corpus: describe(documents[corpus], arrays, corpus)
                  for corpus in corpora.CORPORA}}
    (args.out / "data.json").write_text(json.dumps(summary, indent=1) + "\n")
    for corpus in corpora.CORPORA:
        for part, facts in summary[corpus].items():
            print(f"{corpus:5} {part:10} {facts['documents']:5} documents {facts['bytes']:9} bytes "
                  f"{facts['tokens']:8} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
