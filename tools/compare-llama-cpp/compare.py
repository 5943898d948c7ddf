#!/usr/bin/env python3
"""Compare the speed of Reckon and llama.cpp on this machine's CPU, on the same GGUF file.

    compare.py [--reckon PROGRAM] [--threads 2] [--pairs 4] MODEL.gguf ...

Runs pairs of fresh processes in turn, Reckon first in every other pair (ABBA), so that a slow
minute of the machine hits both. A process loads the file, warms up, then prefills --prompt tokens
and decodes --generate tokens one by one from an empty context. Printed for each figure are the
medians of both engines, and the median and range of the ratio within pairs; above 1 Reckon is
faster. Loading is from a file that is in the page cache.

It builds nothing: llama.cpp is the one in the installed PyPI package llama-cpp-python (--python
names the interpreter that has it). Install it from source for this machine's instructions:

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python

On a processor with AMX, g++ 12 drops stores to the tile configuration of that build, which then
dies of a general protection fault at the first prefill; CXXFLAGS='-fno-tree-dse -fno-dse' keeps
them. An engine that fails has no ratio: the tool stops and says which one.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

FIGURES = ("prefill", "decode", "load")


def run_llama_cpp(options: argparse.Namespace) -> None:
    """In a process of its own: prints its figures as one line of JSON."""
    import llama_cpp  # of --python

    start = time.perf_counter()
    model = llama_cpp.Llama(
        options.models[0],
        n_ctx=max(options.prompt, options.generate + 1) + 64,
        n_batch=512,
        n_ubatch=512,
        n_threads=options.threads,
        n_threads_batch=options.threads,
        n_gpu_layers=0,
        verbose=False,
    )
    load = time.perf_counter() - start
    vocabulary = model.n_vocab()
    tokens = [(7919 * i + 11) % (vocabulary - 1000) + 500 for i in range(options.prompt)]
    generated = [(104729 * i + 3) % (vocabulary - 1000) + 500 for i in range(options.generate + 1)]
    seconds = {}
    for _ in range(2):  # the first is a warm-up
        model.reset()
        start = time.perf_counter()
        model.eval(tokens)
        seconds["prefill"] = time.perf_counter() - start
        model.reset()
        model.eval(generated[:1])
        start = time.perf_counter()
        for token in generated[1:]:
            model.eval([token])
        seconds["decode"] = time.perf_counter() - start
    print(
        json.dumps(
            {
                "prefill": options.prompt / seconds["prefill"],
                "decode": options.generate / seconds["decode"],
                "load": load,
                "version": llama_cpp.__version__,
            }
        )
    )


def output_of(what: str, command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"compare.py: {what} failed with code {result.returncode}: {reason}")
    return result.stdout


def measure_llama_cpp(model: str, options: argparse.Namespace) -> dict:
    command = [options.python, os.path.abspath(__file__), "--child", model]
    command += ["--threads", str(options.threads)]
    command += ["--prompt", str(options.prompt), "--generate", str(options.generate)]
    return json.loads(output_of("llama.cpp", command).splitlines()[-1])


def measure_reckon(model: str, options: argparse.Namespace) -> dict:
    command = [options.reckon, "bench", "-m", model, "--json", "-r", "1"]
    command += ["-p", str(options.prompt), "-n", str(options.generate)]
    for setting in [f"cpu.threads={options.threads}", *options.set]:
        command += ["--set", setting]
    prefill, decode = json.loads(output_of("reckon", command))
    return {
        "prefill": prefill["avg_ts"],
        "decode": decode["avg_ts"],
        "load": prefill["load_ns"] * 1e-9,
        "version": prefill["build_commit"] + ("+" if prefill["build_dirty"] else ""),
    }


def compare(model: str, options: argparse.Namespace) -> dict:
    pairs = []
    for i in range(options.pairs):
        order = [("reckon", measure_reckon), ("llama.cpp", measure_llama_cpp)]
        if i % 2 == 1:
            order.reverse()
        pair = {name: measure(model, options) for name, measure in order}
        pairs.append(pair)
        if not options.json:
            print(f"  pair {i + 1} of {options.pairs}", file=sys.stderr)
    figures = {}
    for figure in FIGURES:
        ours = [pair["reckon"][figure] for pair in pairs]
        theirs = [pair["llama.cpp"][figure] for pair in pairs]
        # Speeds are rates, loading is a time.
        ratios = [a / b if figure != "load" else b / a for a, b in zip(ours, theirs)]
        figures[figure] = {
            "unit": "s" if figure == "load" else "tok/s",
            "reckon": statistics.median(ours),
            "llama.cpp": statistics.median(theirs),
            "ratio": statistics.median(ratios),
            "lowest_ratio": min(ratios),
            "highest_ratio": max(ratios),
        }
    return {
        "model": model,
        "threads": options.threads,
        "prompt": options.prompt,
        "generate": options.generate,
        "versions": {name: pairs[0][name]["version"] for name in pairs[0]},
        "figures": figures,
        "pairs": pairs,
    }


def table(result: dict) -> str:
    names = {
        "prefill": f"prefill {result['prompt']}, tok/s",
        "decode": f"decode {result['generate']}, tok/s",
        "load": "load, s",
    }
    versions = result["versions"]
    lines = [
        f"{os.path.basename(result['model'])}, {result['threads']} threads, "
        f"{len(result['pairs'])} pairs; reckon {versions['reckon']}, "
        f"llama-cpp-python {versions['llama.cpp']}",
        f"{'':22} {'reckon':>9} {'llama.cpp':>10} {'ratio':>7}  range",
    ]
    for figure in FIGURES:
        row = result["figures"][figure]
        digits = 3 if figure == "load" else 1
        lines.append(
            f"{names[figure]:22} {row['reckon']:9.{digits}f} {row['llama.cpp']:10.{digits}f} "
            f"{row['ratio']:7.2f}  {row['lowest_ratio']:.2f} to {row['highest_ratio']:.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf")
    parser.add_argument(
        "--reckon",
        default=str(pathlib.Path(__file__).resolve().parents[2] / "build/release/reckon"),
        help="the program (build/release/reckon of this checkout)",
    )
    parser.add_argument("--python", default=sys.executable, help="that has llama_cpp (this one)")
    parser.add_argument("--threads", type=int, default=2, help="of both (%(default)s)")
    parser.add_argument("--pairs", type=int, default=4, help="of runs (%(default)s)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens to prefill (%(default)s)")
    parser.add_argument("--generate", type=int, default=128, help="to decode (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for Reckon")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.threads, options.pairs, options.prompt, options.generate) < 1:
        parser.error("--threads, --pairs, --prompt and --generate are at least 1")
    if options.child:
        run_llama_cpp(options)
        return
    results = []
    for model in options.models:
        if not os.path.isfile(model):
            sys.exit(f"compare.py: {model}: there is no such file")
        results.append(compare(model, options))
        if not options.json:
            print(table(results[-1]))
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
