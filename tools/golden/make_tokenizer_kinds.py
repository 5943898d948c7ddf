#!/usr/bin/env python3
"""Small tokenizers of every kind that is read, and what PyPI `tokenizers` and `sentencepiece` do.

    make_tokenizer_kinds.py --corpus prose.txt[.xz] --out FOLDER

Writes texts.json (fixed texts, and the parts that random texts are made of) and, for each kind,
KIND/tokenizer.json or KIND.gguf with a vocabulary trained on the corpus, and KIND.hashes: a line
of four hexadecimal digits a text for the fixed texts, one for 10,000 random texts, and, where there
are control tokens, one for the fixed texts with those as plain text.

A text's four digits are the low 16 bits of the 64-bit FNV-1a hash of its ids (4 bytes each, little
endian). Random text i: a SplitMix64 generator of state i gives n = 1 + next() % 24, then n times
the part next() % len(parts).
"""

import argparse
import io
import json
import lzma
import pathlib

import gguf
import numpy as np
import sentencepiece as spm
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import make_tokenizer_golden as golden

RANDOM_TEXTS = 10_000
MASK = (1 << 64) - 1
MARK = "\u2581"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?%s+|%s| ?[^\s\p{L}%s\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = WORDS % (r"\p{L}", r"\p{N}", "")
QWEN35 = WORDS % (r"[\p{L}\p{M}]", r"\p{N}", r"\p{M}")
LLAMA3 = WORDS % (r"\p{L}", r"\p{N}{1,3}", "")
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
).replace('\\"', '"').replace(r"\r", "\r").replace(r"\n", "\n")  # the published file has line ends
CONTROL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"]


class SplitMix64:
    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def digits(ids):
    value = 0xCBF29CE484222325
    for byte in b"".join(int(i).to_bytes(4, "little") for i in ids):
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value & 0xFFFF:04x}"


def random_text(index, parts):
    random = SplitMix64(index)
    count = 1 + random.next() % 24
    return "".join(parts[random.next() % len(parts)] for _ in range(count))


def make_parts():
    rng = np.random.Generator(np.random.PCG64(golden.SEED))
    parts = list(golden._TRICKY) * 8
    parts += CONTROL * 6 + ["<tool>", "<word>", "word", "<0x41>", MARK, MARK * 2, "  ", "\n\n", "hello", " the", "中文", "かな"] * 6
    for text in golden.random_unicode(rng, 300):
        parts += list(text)[:6]
    return parts


def train(tokenizer, trainer, corpus):
    tokenizer.train_from_iterator([corpus[i : i + 4000] for i in range(0, len(corpus), 4000)], trainer)


def add_control(tokenizer):
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])


def template(tokenizer, before):
    single = [*before, "$A"]
    tokens = [(t, tokenizer.token_to_id(t)) for t in before]
    return processors.TemplateProcessing(single=single, pair=[*single, "$B:1"], special_tokens=tokens)


def byte_level(steps, corpus, *, nfc=False, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    train(tokenizer, trainer, corpus)
    add_control(tokenizer)
    return tokenizer


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def plain_bytes(prefix=False, regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


BYTE_TOKENS = [f"<0x{i:02X}>" for i in range(256)]


def sentencepiece_bpe(corpus, *, byte_fallback=True, fuse_unk=True):
    """A BPE model over characters, trained with spaces as marks."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>"] + (BYTE_TOKENS if byte_fallback else [])
    train(tokenizer, trainers.BpeTrainer(vocab_size=450 + len(special), special_tokens=special, show_progress=False), corpus)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.pre_tokenizer = None
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ["<unk>", *CONTROL]])
    return tokenizer


def mark_decoder(strips):
    steps = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strips else []))


def unigram(corpus, byte_fallback):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>"] + (BYTE_TOKENS if byte_fallback else [])
    train(tokenizer, trainers.UnigramTrainer(vocab_size=600 + len(special), special_tokens=special, unk_token="<unk>", show_progress=False), corpus)
    data = json.loads(tokenizer.to_str())
    data["model"]["byte_fallback"] = byte_fallback
    data["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ["<unk>", *CONTROL]])
    return tokenizer


def kinds(corpus):
    yield "gpt2", byte_level([split(GPT2), plain_bytes()], corpus)
    tokenizer = byte_level([split(LLAMA3), plain_bytes()], corpus, ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template(tokenizer, ["<s>"])])
    yield "llama3", tokenizer
    tokenizer = byte_level([split(LLAMA3), plain_bytes()], corpus)
    tokenizer.post_processor = template(tokenizer, ["<|im_start|>", "<s>"])
    yield "glm4", tokenizer
    yield "qwen2", byte_level([split(QWEN2), plain_bytes()], corpus, nfc=True)
    yield "qwen35", byte_level([split(QWEN35), plain_bytes()], corpus, nfc=True)
    deepseek = [split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), plain_bytes()]
    yield "deepseek-v3", byte_level(deepseek, corpus)

    tokenizer = byte_level([pre_tokenizers.Digits(individual_digits=False), plain_bytes(prefix=True, regex=True)], corpus, nfc=True)
    tokenizer.add_tokens([AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=False), AddedToken("\u00e9d", normalized=True)])
    tokenizer.add_tokens([AddedToken("<word>", single_word=True, rstrip=True, normalized=True), AddedToken("ing", lstrip=True, normalized=True)])
    yield "flags", tokenizer

    tokenizer = sentencepiece_bpe(corpus)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    tokenizer.decoder = mark_decoder(True)
    tokenizer.post_processor = template(tokenizer, ["<s>"])
    yield "llama2", tokenizer
    tokenizer = sentencepiece_bpe(corpus)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = mark_decoder(True)
    yield "llama2-first", tokenizer
    tokenizer = sentencepiece_bpe(corpus)
    tokenizer.normalizer = normalizers.Replace(" ", MARK)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = mark_decoder(False)
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in (MARK * 2, "\n\n", "<tool>")])
    yield "gemma", tokenizer
    tokenizer = sentencepiece_bpe(corpus, byte_fallback=False, fuse_unk=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    yield "bpe-unk", tokenizer

    tokenizer = unigram(corpus, False)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    yield "unigram", tokenizer
    tokenizer = unigram(corpus, True)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = mark_decoder(True)
    yield "unigram-bytes", tokenizer


def sentencepiece(corpus, kind):
    """A SentencePiece model and the GGUF metadata that stand for it."""
    stored = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus[:200_000].split("\n")), model_writer=stored, model_type="bpe" if kind == "llama" else "unigram",
        vocab_size=700 if kind == "llama" else 500, byte_fallback=kind == "llama", normalization_rule_name="identity",
        remove_extra_whitespaces=kind == "t5", hard_vocab_limit=False, num_threads=1, minloglevel=2,
    )  # fmt: skip
    return spm.SentencePieceProcessor(model_proto=stored.getvalue())


def write_gguf(path, model, kind):
    count = model.get_piece_size()

    def kind_of(i):
        tests = ((model.is_unknown, 2), (model.is_control, 3), (model.is_unused, 5), (model.is_byte, 6))
        return next((number for test, number in tests if test(i)), 1)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(kind)
    writer.add_token_list([model.id_to_piece(i) for i in range(count)])
    writer.add_token_scores([model.get_score(i) for i in range(count)])
    writer.add_token_types([kind_of(i) for i in range(count)])
    writer.add_bos_token_id(model.bos_id())
    writer.add_eos_token_id(model.eos_id())
    writer.add_unk_token_id(model.unk_id())
    if kind == "t5":
        writer.add_remove_extra_whitespaces(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    opener = lzma.open if arguments.corpus.suffix == ".xz" else open
    with opener(arguments.corpus, "rt", encoding="utf-8", newline="") as stream:
        corpus = stream.read()[:400_000]
    fixed = golden._WORDS + golden._DIGITS + golden._SCRIPTS + golden._EMOJI + golden._MARKS + golden._SPACES
    fixed += golden._CONTRACTIONS + golden._SPECIAL + golden._CONTROL + [golden._PYTHON, golden._CPP]
    rng = np.random.Generator(np.random.PCG64(golden.SEED))
    fixed += golden.prose(corpus, rng, [(1, 2000, True), (10, 200, False)]) + ["a" * 300, " " * 200, "th" * 100, "字" * 100]
    fixed = list(dict.fromkeys(fixed))
    parts = make_parts()
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "texts.json").write_text(json.dumps({"fixed": fixed, "parts": parts}, separators=(",", ":")) + "\n")
    random = [random_text(i, parts) for i in range(RANDOM_TEXTS)]

    def hashes(encode, texts):
        return "".join(digits(encode(text)) for text in texts)

    for name, tokenizer in kinds(corpus + golden._PYTHON * 4 + golden._CPP * 4):
        folder = arguments.out / name
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(tokenizer.to_str() + "\n")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

        def encode(text, tokenizer=tokenizer):
            return tokenizer.encode(text, add_special_tokens=False).ids

        lines = [hashes(encode, fixed), hashes(encode, random)]
        tokenizer.encode_special_tokens = True
        lines.append(hashes(encode, fixed))
        (arguments.out / f"{name}.hashes").write_text("\n".join(lines) + "\n")
        print(name, tokenizer.get_vocab_size())
    for kind in ("llama", "t5"):
        model = sentencepiece(corpus, kind)
        write_gguf(arguments.out / f"{kind}.gguf", model, kind)
        lines = [hashes(model.encode, fixed), hashes(model.encode, random)]
        (arguments.out / f"{kind}.hashes").write_text("\n".join(lines) + "\n")
        print(kind, model.get_piece_size())


if __name__ == "__main__":
    main()
