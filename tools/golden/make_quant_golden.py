#!/usr/bin/env python3
"""Raw weight blocks and the float32 values that PyPI `gguf` gives them.

    make_quant_golden.py --out DIR

One file a type: `blocks` U8 [count, bytes of a block], `values` F32 [count,
elements of a block]. The edge blocks come first. F16 and BF16 go in runs of 32
elements. No infinity, no NaN. Every product of a scale and a code fits 24 bits,
so fused multiply-add changes nothing.
"""

import argparse
import itertools
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

import safetensors_io

SEED = 3232

# Half-precision bit patterns: ±0, the subnormals' ends, the smallest normal, 1 - ulp, ±1, the largest.
_HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x0200, 0x03FF, 0x83FF, 0x0400, 0x3BFF, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF]


def _half_bytes(bits):
    return np.array(bits, "<u2").view(np.uint8)


def _codes_q4(rng):
    """Nibbles: all 0, all 15, low 0 and high 15, the reverse, a ramp, random."""
    return [np.full(16, b, np.uint8) for b in (0x00, 0xFF, 0xF0, 0x0F)] + [
        np.arange(16, dtype=np.uint8) * 0x11,
        rng.integers(0, 256, 16, dtype=np.uint8),
    ]


def _codes_q8(rng):
    """Codes: all -128, all 127, all 0, alternating -128 and 127, one -128, a ramp, random."""
    one = np.zeros(32, np.int8)
    one[17] = -128
    ramp = np.linspace(-128, 127, 32).astype(np.int8)
    alternating = np.where(np.arange(32) % 2, 127, -128).astype(np.int8)
    constant = [np.full(32, c, np.int8) for c in (-128, 127, 0)]
    return [c.view(np.uint8) for c in [*constant, alternating, one, ramp, rng.integers(-128, 128, 32, dtype=np.int8)]]


def _random_halves(rng, shape, std):
    return (std * rng.standard_normal(shape)).astype(np.float16).view(np.uint16)


def q4_1(rng):
    edges = [
        np.concatenate([_half_bytes([d]), _half_bytes([m]), codes])
        for (d, m), codes in itertools.product(
            [(d, 0xB800) for d in _HALVES] + [(0x2E66, m) for m in _HALVES] + [(0, 0), (0x8000, 0x8000), (0x7BFF, 0xFBFF)],
            _codes_q4(rng),
        )
    ]
    return edges, [
        np.concatenate([_half_bytes(_random_halves(rng, 1, 0.02)), _half_bytes(_random_halves(rng, 1, 0.2)), codes])
        for codes in rng.integers(0, 256, (150, 16), dtype=np.uint8)
    ]


def q8_0(rng):
    edges = [np.concatenate([_half_bytes([d]), codes]) for d, codes in itertools.product(_HALVES, _codes_q8(rng))]
    return edges, [
        np.concatenate([_half_bytes(_random_halves(rng, 1, 0.01)), codes])
        for codes in rng.integers(0, 256, (150, 32), dtype=np.uint8)
    ]


def _runs(rng, edges, finite, random):
    """Blocks of 32 elements: edge patterns, random finite patterns, values as weights have them."""
    edges = np.resize(np.array(edges, np.uint16), -(-len(edges) // 32) * 32)
    patterns = rng.integers(0, 1 << 16, 8192, dtype=np.uint16)
    patterns = patterns[finite(patterns)][: 100 * 32]
    split = [list(part.astype("<u2").reshape(-1, 32).view(np.uint8)) for part in (edges, patterns, random)]
    return split[0], split[1] + split[2]


def f16(rng):
    powers = [sign | exponent << 10 | m for sign in (0, 0x8000) for exponent in range(31) for m in (0, 1, 0x3FF)]
    finite = lambda bits: (bits & 0x7C00) != 0x7C00  # noqa: E731
    return _runs(rng, _HALVES + powers, finite, _random_halves(rng, 40 * 32, 0.1))


def bf16(rng):
    powers = [sign | exponent << 7 | m for sign in (0, 0x8000) for exponent in range(255) for m in (0, 0x7F)]
    finite = lambda bits: (bits & 0x7F80) != 0x7F80  # noqa: E731
    return _runs(rng, powers, finite, safetensors_io.bf16_bits(0.1 * rng.standard_normal(40 * 32)))


# The other types: their fields in the file's order, "half" or a number of plain bytes.
_LAYOUTS = {
    Type.Q4_0: ["half", 16],
    Type.Q5_0: ["half", 4, 16],
    Type.Q5_1: ["half", "half", 4, 16],
    Type.IQ4_NL: ["half", 16],
    Type.Q2_K: [16, 64, "half", "half"],
    Type.Q3_K: [32, 64, 12, "half"],
    Type.Q4_K: ["half", "half", 12, 128],
    Type.Q5_K: ["half", "half", 12, 32, 128],
    Type.Q6_K: [128, 64, 16, "half"],
    Type.IQ4_XS: ["half", 2, 4, 128],
}
_FILLS = (0x00, 0xFF, 0x0F, 0xF0, 0x55, 0xAA, 0x80, 0x7F)


def _block(rng, fields, halves, fill):
    """One block: halves in turn, every byte of the rest `fill`, or random where it is None."""
    halves = itertools.cycle(halves)
    parts = []
    for field in fields:
        if field == "half":
            parts.append(_half_bytes([next(halves)]))
        elif fill is None:
            parts.append(rng.integers(0, 256, field, dtype=np.uint8))
        else:
            parts.append(np.full(field, fill, np.uint8))
    return np.concatenate(parts)


def blocks_of(kind):
    """Edges: each kind of half over random bytes, each fill of bytes. Then random blocks."""

    def make(rng):
        fields = _LAYOUTS[kind]
        small = gguf.GGML_QUANT_SIZES[kind][0] == 32
        edges = [_block(rng, fields, (d, m), None) for d, m in zip(_HALVES, reversed(_HALVES), strict=True)]
        edges = edges if small else edges[::2]
        edges += [_block(rng, fields, (0x3C00, 0xB800), fill) for fill in (_FILLS if small else _FILLS[:4])]
        return edges, [_block(rng, fields, _random_halves(rng, 2, 0.05), None) for _ in range(32 if small else 6)]

    return make


def mxfp4(rng):
    exponents = [0, 1, 2, 3, 64, 127, 128, 129, 251, 252]  # above, 12 times the power is no float32
    edges = [np.concatenate([[e], rng.integers(0, 256, 16)]).astype(np.uint8) for e in exponents]
    edges += [np.full(17, fill, np.uint8) for fill in _FILLS if fill != 0xFF]
    edges.append(np.concatenate([[127], np.arange(16) * 0x11]).astype(np.uint8))
    return edges, [
        np.concatenate([[e], rng.integers(0, 256, 16)]).astype(np.uint8) for e in rng.integers(115, 130, 32)
    ]


def main():
    makers = {Type.Q4_1: q4_1, Type.Q8_0: q8_0, Type.F16: f16, Type.BF16: bf16, Type.MXFP4: mxfp4}
    makers |= {kind: blocks_of(kind) for kind in _LAYOUTS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for kind, make in makers.items():
        edges, others = make(np.random.Generator(np.random.PCG64([SEED, int(kind)])))
        blocks = np.stack(edges + others)
        raw = blocks.view("<f2") if kind == Type.F16 else blocks
        values = gguf.quants.dequantize(raw, kind).astype(np.float32)
        assert values.shape == (len(blocks), max(32, gguf.GGML_QUANT_SIZES[kind][0])) and np.isfinite(values).all()
        path = out / f"{kind.name.lower()}.safetensors"
        safetensors_io.save(path, {"blocks": blocks, "values": values}, metadata={"edge_blocks": str(len(edges))})
        print(f"{path}: {len(edges)} edge blocks, {len(others)} others, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
