#!/usr/bin/env python3
"""Compares what Reckon and llama.cpp compute for GGUF files with recorded results beside them.

  tools/gguf-hybrids/compare.py [--reckon PROGRAM] FILE.gguf...

The files are those of convert.py. Prints, file by file, the largest differences of logits from the
recorded ones (transformers, float32) over all prompts: Reckon's by `reckon check-oracle` in reference
numerics, llama.cpp's with a float32 KV cache and without flash attention; or why llama.cpp does not
load the file. Exits with 1 where Reckon, or llama.cpp on a file that it loads, is off by over 2e-3.

Needs numpy, safetensors and llama-cpp-python 0.3.36.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from safetensors import safe_open

LIMIT = 2e-3


def reckon_difference(program: str, gguf: pathlib.Path) -> tuple[float, bool]:
    """The largest difference of a logit, and whether everything recorded agrees."""
    command = [program, "check-oracle", str(gguf), "--numerics", "reference", "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode not in (0, 4):
        sys.exit(result.stderr.strip())
    report = json.loads(result.stdout)
    return report["largest_logit_difference"], report["passed"]


@contextlib.contextmanager
def caught_stderr():
    """What native code writes to standard error, as a file to read."""
    saved = os.dup(2)
    with tempfile.TemporaryFile("w+") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def load_llama(gguf: pathlib.Path):
    """llama.cpp's model, or why there is none."""
    from llama_cpp import Llama

    f32 = 0
    options = {"n_ctx": 1024, "n_batch": 1024, "n_ubatch": 1024, "logits_all": True}
    with caught_stderr() as log:
        try:
            return Llama(str(gguf), **options, type_k=f32, type_v=f32, flash_attn=False), ""
        except ValueError as error:
            log.seek(0)
            reasons = [line.strip() for line in log if "error loading model:" in line]
            return None, reasons[0].split("model: ", 1)[1] if reasons else str(error)


def llama_difference(model, recorded: pathlib.Path) -> float:
    largest = 0.0
    with caught_stderr(), safe_open(recorded, "np") as file:
        names = set(file.keys())
        prompt = 0
        while f"p{prompt}.tokens" in names:
            tokens = [int(t) for t in file.get_tensor(f"p{prompt}.tokens")]
            expected = file.get_tensor(f"p{prompt}.logits")
            model.reset()
            model.eval(tokens)
            got = np.array(model.scores[: len(tokens)])[-len(expected) :]
            largest = max(largest, float(np.abs(got - expected).max()))
            prompt += 1
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reckon", default="build/release/reckon")
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    agree = True
    for gguf in arguments.files:
        reckon, passed = reckon_difference(arguments.reckon, gguf)
        model, reason = load_llama(gguf)
        line = f"{gguf.stem}: reckon {reckon:.1e}{'' if passed else ' FAILED'}"
        agree = agree and passed
        if model is None:
            print(f"{line}, llama.cpp does not load it: {reason}")
            continue
        difference = llama_difference(model, gguf.with_suffix(".oracle.safetensors"))
        agree = agree and difference <= LIMIT
        print(f"{line}, llama.cpp {difference:.1e}{'' if difference <= LIMIT else ' FAILED'}")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
