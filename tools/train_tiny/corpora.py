"""The two corpora as documents, without duplicates, each in one of three parts by a seeded draw.

prose: novels in the public domain, in one text file; a document is a passage of about 24 KB cut
between paragraphs, so that every part has some of every book.
code: the Python standard library's sources, tests included; a document is a file.
"""
import hashlib
import lzma
import random
from dataclasses import dataclass
from pathlib import Path

PARTS = ("train", "validation", "test")
CORPORA = ("prose", "code")
PASSAGE_BYTES = 24_000
LARGEST_HELD_OUT = 64_000  # bytes of a document: none may dominate its part
SHARED_LINES = 0.5  # a file is a duplicate when this share of its lines was seen before

# Tables, prose, and files that are wrong on purpose.
LEFT_OUT = ("site-packages", "pydoc_data", "lib2to3/tests/data", "test/encoded_modules",
            "test/bad", "test/test_importlib/data", "encodings/cp", "encodings/mac_",
            "encodings/iso8859", "encodings/koi8", "encodings/kz", "encodings/hp", "encodings/ptcp",
            "encodings/tis", "_sysconfigdata", "idlelib/help")


@dataclass
class Document:
    name: str
    text: str
    part: str = "train"
    follows: bool = False  # goes on where the document before it in the same part stops

    @property
    def size(self) -> int:
        return len(self.text.encode())


def prose_documents(path: Path) -> list[Document]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        paragraphs = file.read().split("\n\n")
    documents, passage, size = [], [], 0
    for paragraph in paragraphs:
        passage.append(paragraph + "\n\n")
        size += len(passage[-1].encode())
        if size >= PASSAGE_BYTES:
            documents.append(Document(f"passage {len(documents)}", "".join(passage)))
            passage, size = [], 0
    if passage:
        documents.append(Document(f"passage {len(documents)}", "".join(passage)))
    return documents


def code_documents(root: Path) -> list[Document]:
    documents = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(LEFT_OUT) or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if text.strip():
            documents.append(Document(name, text if text.endswith("\n") else text + "\n"))
    return documents


def without_duplicates(documents: list[Document]) -> list[Document]:
    """Leaves out documents most of whose longer lines stand in documents before them."""
    seen, kept = set(), []
    for document in documents:
        lines = [line.strip() for line in document.text.splitlines() if len(line.strip()) >= 20]
        hashes = [hashlib.blake2b(line.encode(), digest_size=8).digest() for line in lines]
        repeated = sum(h in seen for h in hashes)
        if hashes and repeated > SHARED_LINES * len(hashes):
            continue
        seen.update(hashes)
        kept.append(document)
    return kept


def divide(documents: list[Document], share: float, seed: int) -> None:
    """Draws documents for validation and test until each has `share` of all bytes."""
    order = list(range(len(documents)))
    random.Random(seed).shuffle(order)
    wanted = share * sum(document.size for document in documents)
    sizes = dict.fromkeys(PARTS, 0)
    for index in order:
        document = documents[index]
        part = next((p for p in PARTS[1:] if sizes[p] < wanted), None)
        if part is None:
            break
        if document.size <= LARGEST_HELD_OUT:
            document.part = part
            sizes[part] += document.size


def load(prose: Path, stdlib: Path, share: float, seed: int) -> dict[str, list[Document]]:
    """Documents by corpus, in their order, each with its part."""
    corpora = {"prose": without_duplicates(prose_documents(prose)),
               "code": without_duplicates(code_documents(stdlib))}
    for documents in corpora.values():
        divide(documents, share, seed)
    for before, after in zip(corpora["prose"], corpora["prose"][1:]):
        after.follows = before.part == after.part
    return corpora
