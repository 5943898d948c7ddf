"""Byte-level BPE tokenizers of PyPI `tokenizers`, built from what a GGUF file holds.

Special tokens: token types 3 (control) and 4 (user defined) become added
tokens (normalized=False, no stripping; special=True for type 3), so they are
recognised anywhere in the text, the longest where several match. There is no
post-processor: nothing is added before or after the text.

A byte that has no token in the vocabulary (SmolLM2 lacks 21 of 256) is dropped
without a trace, since the model has no unknown token; what stood beside it is
adjacent afterwards and may merge.
"""

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CONTROL, USER_DEFINED = 3, 4

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def pre_tokenizer(name):
    """By the value of `tokenizer.ggml.pre`."""
    if name == "smollm":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    if name == "qwen2":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_QWEN2), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    raise ValueError(f"tokenizer.ggml.pre {name!r}")


def build(tokens, merges, types, pre):
    """`merges` as GGUF has them: "left right"."""
    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(merge.split(" ")) for merge in merges]))
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer(pre)
    added = [
        AddedToken(token, special=kind == CONTROL, normalized=False)
        for token, kind in zip(tokens, types)
        if kind in (CONTROL, USER_DEFINED)
    ]
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    assert tokenizer.get_vocab_size() == len(tokens)
    return tokenizer


def from_gguf(reader):
    """From a gguf.GGUFReader."""

    def value(key):
        return reader.fields["tokenizer.ggml." + key].contents()

    return build(value("tokens"), value("merges"), value("token_type"), value("pre"))
