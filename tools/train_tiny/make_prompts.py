#!/usr/bin/env python3
"""Writes prompts from the test parts of the corpora: text that the small model was not trained on.

  tools/train_tiny/make_prompts.py --prose FILE [--stdlib DIR] [-o prompts]

held-out-prose-1.txt and -2.txt are paragraphs of novels, held-out-code-1.txt and -2.txt beginnings
of source files, each cut where a paragraph or a block ends. The same inputs give the same files;
--prose, --stdlib, --held-out and --seed as for data.py.
"""
import argparse
import random
import sys
import sysconfig
from pathlib import Path

import corpora

LEAST, MOST = 1200, 2000  # bytes
EACH = 2


def ends(document: corpora.Document, corpus: str) -> list[int]:
    """Where a prompt may stop: behind an empty line, of code before a line of column 0."""
    text, found, at = document.text, [], 0
    while (at := text.find("\n\n", at)) >= 0:
        at += 2
        if corpus == "prose" or (at < len(text) and not text[at].isspace()):
            found.append(at)
    return found


def prompt_of(document: corpora.Document, corpus: str) -> str | None:
    """From the first paragraph's end (a passage may begin anywhere) or the file's beginning."""
    places = ends(document, corpus)
    first = 0 if corpus == "code" or not places else places[0]
    for place in places:
        if LEAST <= place - first <= MOST:
            return document.text[first:place].rstrip("\n") + "\n"
    return None


def choose(documents: list[corpora.Document], corpus: str, seed: int) -> list[tuple[str, str]]:
    held_out = [document for document in documents if document.part == "test"]
    random.Random(seed).shuffle(held_out)
    found = [(document.name, text) for document in held_out
             if (text := prompt_of(document, corpus)) and suits(text, corpus)]
    return found[:EACH]


def suits(text: str, corpus: str) -> bool:
    """Code that is more than a docstring, and has no notice of its own."""
    plain = text.isascii() and "opyright" not in text
    return plain and (corpus == "prose" or text.count("def ") >= 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prose", type=Path, required=True)
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--held-out", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--out", type=Path, default=Path("prompts"))
    args = parser.parse_args()
    documents = corpora.load(args.prose, args.stdlib, args.held_out, args.seed)
    for corpus in corpora.CORPORA:
        chosen = choose(documents[corpus], corpus, args.seed)
        if len(chosen) < EACH:
            print(f"make_prompts.py: {len(chosen)} prompts of {corpus}; expected {EACH}",
                  file=sys.stderr)
            return 1
        for index, (name, text) in enumerate(chosen, 1):
            path = args.out / f"held-out-{corpus}-{index}.txt"
            path.write_text(text)
            print(f"{path}: {name}, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
