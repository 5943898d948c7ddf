#!/usr/bin/env python3
"""Texts and the token ids that PyPI `tokenizers` gives them, as JSON lines.

    make_tokenizer_golden.py --corpus prose.txt[.xz] --gguf FILE --set full|small [--plain] --out FILE.jsonl

The tokenizer is built from the GGUF file's tokens, merges, token types and
pre-tokenizer (bpe.py). Lines: {"text": ..., "ids": [...]}, everything but
printable ASCII escaped.

Special tokens in a text are recognised (added tokens, special=True) and become
their ids; nothing is added before or after the text. With --plain, control
tokens are plain text (`encode_special_tokens`), and only the texts in which
that matters are written.

Random strings hold no code point that Unicode 14.0 leaves unassigned in planes
0 to 3 and 14 (newer versions turn some of those into letters and digits, and
libraries differ in their version); the private-use, never assigned and
non-character ones of other planes are in.
"""

import argparse
import json
import lzma
import pathlib
import unicodedata

import gguf
import numpy as np

import bpe

SEED = 20240

_PYTHON = '''\
import dataclasses
from typing import Iterator


@dataclasses.dataclass(frozen=True)
class Span:
    """A half-open range [begin, end)."""
    begin: int
    end: int = 0x7FFF_FFFF

    def __len__(self) -> int:
        return self.end - self.begin  # never < 0


def spans(text: str, *, sep: str = "\\t") -> Iterator[Span]:
\tat = 0
\tfor part in text.split(sep):
\t\tyield Span(at, at := at + len(part) + len(sep))


if __name__ == "__main__":
    print({k: v**2 for k, v in zip("abc", [1.5e-3, 2j, 0b1011])}, f"{3.14159:>10.3f}")
    assert not (lambda *a, **kw: a or kw)() != {}, r"\\d+\\s*" + '\\'\\u00e9\\''
'''

_CPP = """\
// Copyright notice here.
#include <cstdint>
#include <vector>

namespace reckon {
template <typename T, int N = 4>
[[nodiscard]] constexpr T dot(const T (&a)[N], const T* b) noexcept {
  T sum{};
  for (int i = 0; i < N; ++i) sum += a[i] * b[i];  /* fixed order */
  return sum;
}
#define CHECK(x) do { if (!(x)) std::abort(); } while (0)
static_assert(sizeof(std::uint64_t) == 8 && 1'000'000 == 1e6, "odd machine");
int main(int argc, char** argv) {
\tstd::vector<std::pair<int, double>> v{{1, 0x1p-3}, {-2, 3.f}};
\tauto f = [&v](auto&&... xs) -> bool { return ((xs != nullptr) && ...); };
\treturn f(argv, &argc) ? v[0].first<<3 : ~0u % 7;
}
}  // namespace reckon\r
"""

_WORDS = [
    "",
    " ",
    "a",
    "\n",
    "hello",
    "Hello, world!",
    " leading space",
    "trailing space ",
    "two  spaces   three    four",
    "The quick brown fox jumps over the lazy dog.",
    "SCREAMING_SNAKE_CASE camelCase PascalCase kebab-case dotted.path.name",
    "https://example.org/a/b?c=d&e=%20f#g user@example.com C:\\Users\\x ../y ~/.z",
    "x=1;y=x+2*3/4-5%6^7&8|9", "<p class=\"q\">&amp;</p>", '{"k": [1, 2.5, null, true], "é": "\\u00e9"}',
    "| a | b |\n|---|---|\n| 1 | 2 |\n", "# Title\n\n- item\n  - nested\n\n```c\nint x;\n```\n",
    "$\\frac{1}{2}\\sum_{i=0}^{n} x_i^2$", "...", "…", "--", "—", "?!?!", "!!!!!!!!!!!!!!!!!!!!!!!!", "=" * 80, "-" * 33,
]  # fmt: skip

_DIGITS = [
    "0", "7 8", "12", "123", "1234567890", "3.14159265358979323846264338327950288419716939937510", "1" * 64,
    "2024-02-29T23:59:60.000Z", "1,234,567.89", "-42", "+1 (555) 010-9999", "0xDEADBEEF", "1e-10", "v1.2.3-rc4",
    "a1b2c3", "1st 2nd 3rd", "  1", "1  2", " 1 ", "x 1", "\n1", "1\n2\n", "\t3\t4", "5'6\"", "12's", "9's 'll7",
    # Unicode numbers: Arabic-Indic, Devanagari, full width, superscript, fractions, Roman, circled, CJK (letters).
    "٠١٢٣٤٥٦٧٨٩", "०१२३", "０１２３ＡＢＣ", "x²y³", "½¾⅓ 1½", "ⅣⅫ", "①②③⑳", "一二三四", "𝟘𝟙𝟚𝟛", "𒐀𒐁", "a¼b", " ²", "㉈㊿",
]  # fmt: skip

_SCRIPTS = [
    "你好，世界！今天天气怎么样？", "日本語のテキスト、カタカナとひらがな。", "한국어 문장입니다. 안녕하세요?", "繁體中文測試「引號」",
    "𠀀𠮷𡈽 rare ideographs 𪛖", "漢字kanji混ぜ書き123テスト", "ｶﾀｶﾅ half width ＦＵＬＬ",
    "Привет, как дела? Ёлка.", "Γειά σου Κόσμε· ΐ ΰ", "שלום עולם, מה שלומך? ״ציטוט״", "مرحبا بالعالم، كيف حالك؟ ١٢٣",
    "فارسی با نیم‌فاصله می‌شود", "नमस्ते दुनिया, क्षत्रिय", "สวัสดีชาวโลก", "ສະບາຍດີ", "မင်္ဂလာပါ", "ជំរាបសួរ", "வணக்கம் உலகம்",
    "გამარჯობა", "Բարեւ", "ሰላም ልዑል", "ᏣᎳᎩ", "ᚠᚢᚦᚨᚱᚲ", "𐌲𐌿𐍄𐌹𐍃𐌺", "𓀀𓂀𓃰", "Tiếng Việt có dấu", "Çağrı ılık İstanbul",
    "Straße GROẞ ﬁne ﬀ Ǆ ǅ", "ʻOkina Hawaiʻi", "zażółć gęślą jaźń", "mixed עברית and العربية and English 123",
    "\u202eright to left override\u202c", "\u2066isolate\u2069", "\u200frlm\u200elrm",
]  # fmt: skip

_EMOJI = [
    "😀", "😀😃😄", "hi 👋🏽 there", "👨‍👩‍👧‍👦", "🏳️‍🌈 🏴‍☠️", "🇩🇪🇫🇷🇯🇵", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️ vs ❤", "1️⃣2️⃣#️⃣", "👩🏿‍🚀 and 🧑🏻‍❤️‍💋‍🧑🏼",
    "☃️☔︎☕️", "™©®", "🀄🃏", "♔♕♖ ♟️", "→⇒↯ ∀∃∅∈ ≤≥≠", "░▒▓█ ┌─┐│└┘", "🫠🫱🏼‍🫲🏿",
]  # fmt: skip

_MARKS = [
    "e\u0301 vs é", "a\u0308\u0323\u0304b", "Z\u0351\u036b\u0343\u032a\u0302\u036ba\u0308l\u0334g\u035do\u0321",
    "\u0301alone", " \u0301after space", "n\u0303 n\u0303o", "한\u1100\u1161\u11a8", "\u1e9b\u0323", "Å Å A\u030a Ω Ω",
    "क\u094d\u200dष", "ก\u0e33", "\u0e4d", "x\u20d7 + y\u20d0", "\ufe0f", "\u034f", "q\u0307\u0323 q\u0323\u0307", "\u2126\u212a\u212b",
]  # fmt: skip

_SPACES = [
    "  ", "   ", "\t", "\t\t", " \t ", "\n\n", "\n\n\n", " \n", "\n ", " \n \n ", "\r\n", "\r\n\r\n", "\r", "\r\r\n", "a\r\nb\r\n\r\nc",
    "a\n b", "a \nb", "a  \n  b", "a\n\n\n\nb", "a\t\tb", "\ta", "a\t", "    indented\n        more\n\tmixed \t tabs\n",
    "nbsp\u00a0here", "\u00a0", "\u00a0\u00a0a", "a \u00a0b", "a\u00a0 b", "ideographic\u3000space", "\u3000\u3000段落", "\u2003em\u2002en\u2009thin\u200ahair",
    "\u2028line\u2029paragraph", "\u0085next line", "a\u0085\u0085b", "\u1680ogham", "zero\u200bwidth", "\ufeffbom", "bom\ufeff inside",
    "word\u2060joiner", "soft\u00adhyphen", "\u180emongolian", "\u000bvertical\u000cform", "\x1c\x1d\x1e\x1f", "a \x1f b", "\u205fmath\u202fnarrow",
    " " * 7 + "x", "x" + " " * 7, " " * 100, "\n" * 50, "\t" * 20, (" \n" * 20), "a" + " " * 33 + "b", "  !", "!  ", " !  ?",
]  # fmt: skip

_CONTRACTIONS = [
    "I'm you're he's she'd we'll they've don't", "I'M YOU'RE HE'S SHE'D WE'LL THEY'VE DON'T", "I'm'd've", "'s", "'t", "''s", "' s",
    "'ll 've 're", "o'clock 'tis rock 'n' roll", "I\u2019m you\u2019re don\u2019t", "I\u02bcm", "I\uff07m", "I`m", "I\u00b4m", "I\u2018m",
    "'sand 'tree 'remark 'very 'mice 'llama 'door", " 's 't", "x's1", "1's", "'S 'T 'RE 'Ll", "'\u017f", "it'\u017f", "can't've", "'", "''", "'''",
    "l'été d'accord qu'il", "dell'arte", "\"'quoted'\"", "y'all'd've", "n't", "'l 'v 'r", "'m\n'd", "'\n's",
]  # fmt: skip

_SPECIAL = [
    "<|im_start|>user\nhi<|im_end|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_end|><|im_end|>", " <|im_start|> ", "a<|im_end|>b",
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\nWho are you?<|im_end|>\n"
    "<|im_start|>assistant\n", "<|im_start", "|im_start|>", "<|im_start|", "<|IM_START|>", "< |im_start|>", "<|im_start|><", "<<|im_start|>>",
    "<|im_<|im_end|>end|>", "<|endoftext|>\n\n<|endoftext|>text", "don<|im_end|>'t", "1<|im_end|>2", "  <|im_end|>  x", "\n<|im_end|>\n",
    "<repo_name>x<file_sep>y<filename>z", "<reponame><gh_stars><issue_start>", "<jupyter_code>1+1<jupyter_output>2<empty_output>", "<repo_namex>",
    "<think>\nhm\n</think>\n\nYes.", "<|pad|><s></s><unk>", "e<|im_end|>\u0301",
]  # fmt: skip

_CONTROL = [
    # SmolLM2 has no token for some of these bytes: they vanish, and their neighbours merge.
    "!\x13!", ".\x04.\x06.", "(\x16)\x1d;\n", "-\U00040000-", "=\U00080000=\U000c0000=",
    "\x00", "a\x00b", "\x01\x02\x03", "\x04", "\x06", "\x07\x08", "t\x13h", "a\x14\x16\x1db", "the\x04re", "\x1b[31mred\x1b[0m", "\x7f", "\x80\x81\x9f",
    "a\x7fb", "\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a", "line\x00\n\x00", "\ufffd", "\ufffe\uffff", "\U0001fffe", "\U0010ffff",
    "\U000f0000private\ue000", "\U00040000\U000bfffd", "in\U00040000 the", "\ufff9\ufffa\ufffb", "\U000e0001\U000e0041\U000e007f", "\xad\u061c",
]  # fmt: skip

# What splits pieces, and what stands beside it.
_TRICKY = list("    \n\n\r\t'''\"\u2019-.,!?()<|>_0123479aeEilrsStTvVmdDé\u00a0\u0301字") + ["'s", "'ll", "  ", "ed", " th", "ing"]


def _assigned():
    """Code points of planes 0 to 3 and 14 that random strings may hold."""
    planes = [range(p << 16, (p + 1) << 16) for p in (0, 1, 2, 3, 14)]
    return np.array([c for plane in planes for c in plane if unicodedata.category(chr(c)) not in ("Cn", "Cs")])


def random_unicode(rng, count):
    assert unicodedata.unidata_version == "14.0.0", "the choice of code points depends on it; use Python 3.11"
    assigned = _assigned()
    bmp, rest = assigned[assigned < 0x10000], assigned[assigned >= 0x10000]
    # Ideographs and syllables would crowd everything else out.
    crowd = np.isin(bmp, np.r_[0x3400:0xA000, 0xAC00:0xE000, 0xE000:0xF900])
    marks = np.array([c for c in assigned if unicodedata.category(chr(c))[0] in "MZ" or unicodedata.category(chr(c)) == "Cf"])
    numbers = np.array([c for c in assigned if unicodedata.category(chr(c))[0] == "N"])
    kinds = [
        (0.30, np.arange(0x20, 0x7F)),
        (0.10, np.array([0x20, 0x20, 0x20, 0x0A])),
        (0.08, np.arange(0x00, 0x100)),
        (0.12, np.arange(0x100, 0x370)),
        (0.12, bmp[~crowd]),
        (0.05, bmp[crowd]),
        (0.07, rest),
        (0.08, marks),
        (0.05, numbers),
        (0.03, np.arange(0x40000, 0xE0000)),  # nothing assigned in planes 4 to 13
        (0.03 - 1e-12, np.arange(0xF0000, 0x110000)),
    ]
    weights = np.array([w for w, _ in kinds])
    weights[0] += 1 - weights.sum()
    texts = []
    for _ in range(count):
        length = 1 + int(rng.geometric(0.12))
        # A string prefers a few kinds, so that characters of one kind meet.
        chosen = rng.choice(len(kinds), size=min(1 + int(rng.integers(4)), length), p=weights)
        picks = (kinds[chosen[int(rng.integers(len(chosen)))]][1] for _ in range(min(length, 40)))
        texts.append("".join(chr(int(pool[int(rng.integers(len(pool)))])) for pool in picks))
    return texts


def random_tricky(rng, count):
    return ["".join(_TRICKY[int(i)] for i in rng.integers(len(_TRICKY), size=int(rng.integers(1, 24)))) for _ in range(count)]


def prose(corpus, rng, plan):
    """plan: (how many, characters, whether to begin at a paragraph)."""
    texts = []
    for count, length, at_paragraph in plan:
        for _ in range(count):
            begin = int(rng.integers(len(corpus) - length - 10_000))
            if at_paragraph:
                begin = corpus.index("\n\n", begin) + 2
            texts.append(corpus[begin : begin + length])
    return texts


def texts_of(size, corpus):
    rng = np.random.Generator(np.random.PCG64(SEED))
    fixed = _WORDS + _DIGITS + _SCRIPTS + _EMOJI + _MARKS + _SPACES + _CONTRACTIONS + _SPECIAL + _CONTROL
    letters = "".join(chr(97 + int(i)) for i in rng.integers(26, size=2000))
    if size == "full":
        plan = [(1, 20_000, True), (4, 3_000, True), (30, 400, True), (60, 100, False), (60, 25, False)]
        long = ["a" * 3000, " " * 2000, "\n" * 1000, "7" * 1000, letters, "ab" * 700, "!" * 1500, "é" * 600, "字" * 400, "😀" * 200]
        counts = (2000, 1000)
    else:
        plan = [(1, 2_000, True), (10, 300, True), (20, 40, False)]
        long = ["a" * 300, " " * 200, letters[:300], "th" * 100]
        counts = (500, 400)
    texts = fixed + [_PYTHON, _CPP] + long + prose(corpus, rng, plan) + random_unicode(rng, counts[0]) + random_tricky(rng, counts[1])
    return list(dict.fromkeys(texts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--gguf", type=pathlib.Path, required=True)
    parser.add_argument("--set", choices=("full", "small"), required=True)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    opener = lzma.open if arguments.corpus.suffix == ".xz" else open
    with opener(arguments.corpus, "rt", encoding="utf-8", newline="") as stream:
        corpus = stream.read()
    tokenizer = bpe.from_gguf(gguf.GGUFReader(arguments.gguf))
    texts = texts_of(arguments.set, corpus)
    parsed = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    lines = list(zip(texts, parsed))
    if arguments.plain:
        tokenizer.encode_special_tokens = True
        plain = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        lines = [(text, ids) for text, ids, other in zip(texts, plain, parsed) if ids != other]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with open(arguments.out, "w", encoding="ascii", newline="\n") as stream:
        for text, ids in lines:
            stream.write(json.dumps({"text": text, "ids": ids}, separators=(",", ":")) + "\n")
    print(f"{arguments.out}: {len(lines)} lines, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
