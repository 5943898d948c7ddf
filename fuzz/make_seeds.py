#!/usr/bin/env python3
"""Writes the seeds that fuzzing begins with, OUT/TARGET/*, from recorded data, queues and a few lines
here: small files of every kind that a target reads.

  fuzz/make_seeds.py GOLDEN OUT

GOLDEN is tests/golden with its archives unpacked, as a build has it (build/fuzz/golden).
"""
import json
import pathlib
import shutil
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def gguf_text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf(keys: dict, tensors: dict, version: int = 3) -> bytes:
    """keys: name -> (value type number, encoded value); tensors: name -> (shape, type, data)."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, (kind, value) in keys.items():
        out += gguf_text(name) + struct.pack("<I", kind) + value
    data = b""
    for name, (shape, kind, content) in tensors.items():
        out += gguf_text(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", size) for size in shape)
        out += struct.pack("<IQ", kind, len(data))
        data += content + b"\0" * (-len(content) % 32)
    return out + b"\0" * (-len(out) % 32) + data


def gguf_strings(values: list[str]) -> bytes:
    return struct.pack("<IQ", 8, len(values)) + b"".join(map(gguf_text, values))


def gguf_seeds() -> dict[str, bytes]:
    numbers = {
        "a.u32": (4, struct.pack("<I", 7)),
        "a.f32": (6, struct.pack("<f", 0.5)),
        "a.bool": (7, b"\1"),
        "a.text": (8, gguf_text("llama")),
        "a.array": (9, struct.pack("<IQ", 5, 2) + struct.pack("<ii", -1, 1)),
        "a.nested": (9, struct.pack("<IQ", 9, 1) + struct.pack("<IQB", 0, 1, 3)),
        "general.alignment": (4, struct.pack("<I", 32)),
    }
    # (type number, elements, bytes) of a block
    blocks = [(0, 1, 4), (1, 1, 2), (2, 32, 18), (3, 32, 20), (6, 32, 22), (7, 32, 24)]
    blocks += [(8, 32, 34), (10, 256, 84), (11, 256, 110), (12, 256, 144), (13, 256, 176)]
    blocks += [(14, 256, 210), (20, 32, 18), (23, 256, 136), (30, 1, 2), (39, 32, 17)]
    tensors = {
        f"t{kind}": ([elements, 1], kind, bytes(i % 251 for i in range(size)))
        for kind, elements, size in blocks
    }
    pieces = ["<unk>", "<s>", "</s>", "\u2581", "H", "e", "l", "o", "\u2581H", "ll", "<0x0A>"]
    count = struct.pack("<IQ", 6, len(pieces))
    vocabulary = {
        "tokenizer.ggml.tokens": (9, gguf_strings(pieces)),
        "tokenizer.ggml.scores": (9, count + struct.pack("<11f", *[-float(i) for i in range(11)])),
        "tokenizer.ggml.token_type": (
            9,
            struct.pack("<IQ", 5, 11) + struct.pack("<11i", 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 6),
        ),
        "tokenizer.ggml.bos_token_id": (4, struct.pack("<I", 1)),
        "tokenizer.ggml.eos_token_id": (4, struct.pack("<I", 2)),
        "tokenizer.ggml.unknown_token_id": (4, struct.pack("<I", 0)),
    }
    byte_level = {
        "tokenizer.ggml.model": (8, gguf_text("gpt2")),
        "tokenizer.ggml.pre": (8, gguf_text("smollm")),
        "tokenizer.ggml.tokens": (9, gguf_strings(["H", "e", "l", "o", "\u0120", "He", "ll"])),
        "tokenizer.ggml.token_type": (9, struct.pack("<IQ", 5, 7) + struct.pack("<7i", *[1] * 7)),
        "tokenizer.ggml.merges": (9, gguf_strings(["H e", "l l"])),
    }
    split = {
        "split.no": (2, struct.pack("<H", 0)),
        "split.count": (2, struct.pack("<H", 2)),
        "split.tensors.count": (5, struct.pack("<i", 2)),
    }
    return {
        "numbers": gguf(numbers, {"t0": ([2, 1], 0, bytes(8))}),
        "v2": gguf({"a.text": (8, gguf_text("x"))}, {"t0": ([1], 0, bytes(4))}, 2),
        "blocks": gguf({}, tensors),
        "llama": gguf({"tokenizer.ggml.model": (8, gguf_text("llama")), **vocabulary}, {}),
        "t5": gguf({"tokenizer.ggml.model": (8, gguf_text("t5")), **vocabulary}, {}),
        "gpt2": gguf(byte_level, {}),
        "split": gguf(split, {"t0": ([2, 1], 0, bytes(8))}),
    }


def safetensors(tensors: dict, padding: int = 0) -> bytes:
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + data


def safetensors_seeds() -> dict[str, bytes]:
    kinds = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "I64": 8, "I32": 4, "U8": 1}
    return {
        "kinds": safetensors({f"t.{k}": (k, [2, 1], bytes(2 * n)) for k, n in kinds.items()}),
        "scalar": safetensors({"t": ("F32", [], bytes(4)), "empty": ("BF16", [0, 3], b"")}, 3),
    }


def index_seeds() -> dict[str, bytes]:
    shards = [f"model-{i:05}-of-00002.safetensors" for i in (1, 2)]
    block = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    config = {"model_type": "qwen3", "quantization_config": block, "a": [1, 2]}
    return {
        "index": json.dumps(
            {"metadata": {"total_size": 8}, "weight_map": {"a": shards[0], "b": shards[1]}}
        ).encode(),
        "config": json.dumps({**config, "rope_parameters": {"rope_theta": 1e4}}).encode(),
        "nested": json.dumps({"text_config": config, "rope_theta": 1e4}).encode(),
    }


def packed_seeds() -> dict[str, bytes]:
    key = {"model": "m", "scheme": "q4", "packing": 1, "data": 512}
    p4 = {"name": "t", "type": "p4", "n": 2, "k": 65, "offset": 0, "sums": [1]}
    p8 = {"name": "u", "type": "p8", "n": 1, "k": 1, "offset": 192, "sums": [2]}
    return {
        "one": json.dumps({**key, "tensors": [p4]}).encode(),
        "two": json.dumps({**key, "tensors": [p8, {**p8, "name": "t", "n": 2, "k": 65}]}).encode(),
    }


def state_seeds() -> dict[str, bytes]:
    """Headers; the target puts 4 KiB of data behind them, all alike, and the checksum in."""
    rows = {"kind": "by position", "type": "f32", "parts": 2, "width": 4, "first": 0, "count": 2}
    header = {
        "model": "m", "weights": "bf16", "backend": "cpu", "isa": "avx2",
        "numerics": {"prefill.numerics": "exact"}, "tokens": [1, 2],
        "buffers": [{"name": "keys", **rows, "offset": 2048, "sum": "SUM"}],
    }
    ring = {**rows, "name": "inputs", "kind": "ring", "parts": 1, "width": 16, "count": 1}
    slots = {**ring, "kind": "slots", "first": 2}
    last = {**ring, "kind": "last pass", "type": "f16", "width": 16, "count": 2, "first": 0}
    buffers = [{**entry, "offset": 2048, "sum": "SUM"} for entry in (ring, slots, last)]
    draft = {"pending": 3, "draft": {"first": 1, "rows": 2, "next": -1}}
    return {
        "plain": json.dumps(header).encode(),
        "hybrid": json.dumps({**header, **draft, "buffers": buffers}).encode(),
    }


def scheme_seeds() -> dict[str, bytes]:
    return {
        "rules": b'- "*.self_attn.?_proj.*": q8\n- lm_head.weight: none\n- "*": q4  # rest\n',
        "flow": b'[{"a*b*c": q8}, {"*": bf16}]',
        "anchor": b"- &a {x: q4}\n- *a\n",
    }


def rules_seeds() -> dict[str, bytes]:
    head = ("name: a\ndate: 2026-11-30\nledger: unmeasured\nchunks: [128, 512]\n"
            "when: {backend: cpu, device.vendor: v, device.isa: amx, device.units: 2}\n"
            "shapes:\n  - {op: matmul, type: q4_0, n: 64, k: 64}\n")
    rule = "{op: matmul, type: q4_0, n: 64.., k: 1..64, rows: 8, tile: tall}"
    shipped = {path.stem: path.read_bytes() for path in sorted((ROOT / "rules").glob("*.yaml"))}
    return shipped | {
        "none": (head + "rules: []\n").encode(),
        "two": (head + f"rules:\n  - {rule}\n  - {rule.replace('q4_0', 'any')}\n").encode(),
        "broken": (head + f"rules:\n  - {rule.replace('64..,', '..64,')}\n").encode(),
    }


def recipe_seeds() -> dict[str, bytes]:
    return {
        "plain": b"when: {backend: cpu, device.isa: amx}\nledger: unmeasured\nswitches:\n"
                 b"  - {key: prefill.chunk, value: 256, ledger: [rk-abcd, rk-efgh]}\n"
                 b"  - {key: decode.drafter, value: 'replay:0.5'}\n",
        "none": b"switches: []\n",
        "twice": b"switches:\n  - {key: a, value: b}\n  - {key: a, value: b}\n",
    }


def tokenizer_seeds(golden: pathlib.Path) -> dict[str, bytes]:
    """The golden tokenizers with a vocabulary of at most 300 entries."""
    seeds = {}
    for path in sorted((golden / "tokenizer" / "kinds").glob("*/tokenizer.json")):
        tokenizer = json.loads(path.read_text(encoding="utf-8"))
        model = tokenizer["model"]
        if isinstance(model["vocab"], list):
            model["vocab"] = model["vocab"][:300]
        else:
            model["vocab"] = {text: i for text, i in model["vocab"].items() if i < 300}
            known = model["vocab"]
            pairs = (m if isinstance(m, list) else m.split(" ") for m in model["merges"])
            model["merges"] = [[a, b] for a, b in pairs if {a, b, a + b} <= set(known)]
        seeds[path.parent.name] = json.dumps(tokenizer).encode()
    return seeds


def queue_seeds() -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in sorted((ROOT / "queues").glob("*.yaml"))}


def ledger_seeds() -> dict[str, bytes]:
    head = {"time": "2026-09-14T08:30:00Z", "writer": "ann", "schema": 1, "sum": "0" * 32}
    scope = {
        "switch": "moe.expert_tile", "base": "32", "arm": "64", "backend": "cuda",
        "device": {"vendor": "nvidia", "isa": "sm_90", "units": 132, "memory_gib": 141},
        "metric": "prefill_tok_per_s", "chunk": 2048, "rows": 2048, "context": 4096,
    }
    idea = {"kind": "ab", "text": "One pass instead of two", "scope": scope, "claim": 0.02}
    verdict = {"verdict": "LOST", "numbers": {"metric": "prefill_tok_per_s", "effect": -0.039}}
    events = [
        {"type": "idea", "body": idea},
        {"type": "measured", "body": {"round": {"id": "r1", "median_log": -0.04, "pairs": []}}},
        {"type": "verdict", "body": verdict},
        {"type": "note", "body": {"text": "seen twice", "revisit_when": ["chunk >= 2048"]}},
        {"type": "overturned", "body": {"reason": "the clock was wrong"}},
        {"type": "superseded", "body": {"reason": "better", "by": "rk-" + "a" * 12}},
        {"type": "imported", "body": {"source": "a report", "idea": idea, "result": verdict}},
    ]
    lines = [json.dumps({**head, "entry": "rk-" + "a" * 12, **event}) for event in events]
    return {
        "all": "\n".join(lines).encode(),
        **{f"line{i}": line.encode() for i, line in enumerate(lines)},
    }


def exchange_seeds(golden: pathlib.Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in sorted((golden / "exchange").iterdir())}
    go = b"goos: linux\npkg: a\nBenchmarkDecode-2 \t 10 \t 1200 ns/op \t 3.5 tok/s\nPASS\n"
    return {**files, "go.txt": go}


def metric_seeds() -> dict[str, bytes]:
    return {
        "path": b'json:$.results[0].tok_s\nloading\n{"results": [{"tok_s": 12.5}]}\n',
        "name": b"json:$['a b'].c[-1]\n" + b'{"a b": {"c": [1, 2]}}',
        "regex": b"regex:([0-9.]+) tok/s\nfirst 1 tok/s\nthen 2.5 tok/s\n",
        "group": b"regex:^(?<value>\\d+) ms$\n17 ms\n",
        "predicate": b"chunk >= 2048",
    }


SEEDS = {
    "gguf": gguf_seeds,
    "ledger_lines": ledger_seeds,
    "metric_reader": metric_seeds,
    "packed_file": packed_seeds,
    "quant_scheme": scheme_seeds,
    "queue": queue_seeds,
    "recipe": recipe_seeds,
    "rules": rules_seeds,
    "safetensors": safetensors_seeds,
    "safetensors_index": index_seeds,
    "state_file": state_seeds,
}
GOLDEN_SEEDS = {"exchange": exchange_seeds, "tokenizer_json": tokenizer_seeds}


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    golden, out = map(pathlib.Path, sys.argv[1:])
    targets = {target: seeds() for target, seeds in SEEDS.items()}
    targets |= {target: seeds(golden) for target, seeds in GOLDEN_SEEDS.items()}
    for target, seeds in targets.items():
        folder = out / target
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in seeds.items():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
