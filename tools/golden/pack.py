#!/usr/bin/env python3
"""Packs recorded files into the archives of tests/golden.

  tools/golden/pack.py FOLDER [--out tests/golden] [ARCHIVE…]

FOLDER is laid out as a build's golden folder (build/release/golden, where CMake unpacks them), with
new or changed files in it. Every archive, or those that are named, is written anew from what its
row of ARCHIVES matches there, which must be something. The same files give the same bytes, where
liblzma is the same.
"""
import argparse
import io
import lzma
import pathlib
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What goes into one archive; cases that share weights are together, which halves them.
ARCHIVES = {
    "chat": ["chat/cases.json"],
    "gguf": ["gguf/*"],
    "oracle-made": ["oracle/*-h[0-9]*/*", "oracle/llama-fp8/*"],
    "oracle-recorded": ["oracle/*-s[0-9]/*"],
    "quant": ["quant/*"],
    "tokenizer": ["tokenizer/**/*"],
}
# Bytes are predicted by their place in a 4-byte value: numbers are most of it.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 2, "lp": 2, "pb": 2}]


def tar_of(folder: pathlib.Path, files: list[pathlib.Path]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in files:
            info = tarfile.TarInfo(path.relative_to(folder).as_posix())
            info.size = path.stat().st_size
            with open(path, "rb") as content:
                tar.addfile(info, content)
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("archives", nargs="*", metavar="ARCHIVE", help=", ".join(ARCHIVES))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests" / "golden")
    args = parser.parse_args()
    if unknown := sorted(set(args.archives) - set(ARCHIVES)):
        sys.exit(f"pack.py: no archive {unknown[0]}; expected one of {', '.join(ARCHIVES)}")
    for name in args.archives or ARCHIVES:
        found = {path for pattern in ARCHIVES[name] for path in args.folder.glob(pattern)}
        files = sorted(path for path in found if path.is_file())
        if not files:
            sys.exit(f"pack.py: {args.folder} has no {' or '.join(ARCHIVES[name])}")
        packed = lzma.compress(tar_of(args.folder, files), filters=FILTERS)
        (args.out / f"{name}.tar.xz").write_bytes(packed)
        print(f"{name}.tar.xz: {len(files)} files, {len(packed):,} bytes")


if __name__ == "__main__":
    main()
