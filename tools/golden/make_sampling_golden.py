#!/usr/bin/env python3
"""What the sampler's rule (src/engine/sampler.h) picks from made-up rows of logits.

    make_sampling_golden.py --out FILE

NumPy and a Mersenne Twister of its own, apart from the engine. Every case draws
several tokens from one row; the penalty sees the tokens drawn before. A draw that
lies within 1e-9 of a boundary, where another exp() could decide otherwise, is an
error here: choose another seed.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

DRAWS = 24
CLOSEST = 1e-9


class Mt19937_64:
    """Matsumoto and Nishimura's 64-bit generator (2004), as the C++ standard's mt19937_64."""

    N, M = 312, 156
    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = [seed & self.MASK]
        for i in range(1, self.N):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ (last >> 62)) + i) & self.MASK)
        self.at = self.N

    def next(self):
        if self.at == self.N:
            for i in range(self.N):
                x = (self.state[i] & 0xFFFFFFFF80000000) | (self.state[(i + 1) % self.N] & 0x7FFFFFFF)
                odd = 0xB5026F5AA96619E9 if x & 1 else 0
                self.state[i] = self.state[(i + self.M) % self.N] ^ (x >> 1) ^ odd
            self.at = 0
        x = self.state[self.at]
        self.at += 1
        x ^= (x >> 29) & 0x5555555555555555
        x ^= (x << 17) & 0x71D67FFFEDA60000
        x ^= (x << 37) & 0xFFF7EEE000000000
        return x ^ (x >> 43)


def survivors(logits, case):
    """Indices that the filters leave, ascending."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if case["top_k"] > 0:
        order = order[: case["top_k"]]
    share = {i: float(np.exp(np.float64(logits[i]) - np.float64(max(logits)))) for i in order}
    if case["top_p"] < 1:
        total, sum_, kept = sum(share[i] for i in sorted(order)), 0.0, []
        for i in order:
            kept.append(i)
            sum_ += share[i]
            check(abs(sum_ / total - case["top_p"]))
            if sum_ >= case["top_p"] * total:
                break
        order = kept
    return sorted(i for i in order if share[i] >= case["min_p"])


def check(distance):
    if distance < CLOSEST:
        sys.exit("a draw is too close to a boundary; change the seed")


def run(case):
    random, seen, tokens, kept = Mt19937_64(case["seed"]), list(case["prompt"]), [], []
    for _ in range(DRAWS):
        logits = np.array(case["logits"], np.float32)
        penalty = np.float32(case["repeat_penalty"])
        for token in set(seen[-case["repeat_window"] :] if case["repeat_window"] else []):
            logits[token] = logits[token] / penalty if logits[token] > 0 else logits[token] * penalty
        if case["temperature"] == 0:
            token = int(np.argmax(logits))
        else:
            left = survivors(logits.tolist(), case)
            kept.append(len(left))
            values = logits[left].astype(np.float64)
            sums = np.cumsum(np.exp((values - values.max()) / case["temperature"]))
            wanted = (random.next() >> 11) * 2.0**-53 * sums[-1]
            check(np.abs(sums[:-1] - wanted).min() / sums[-1] if len(left) > 1 else 1)
            token = left[int(np.searchsorted(sums, wanted, side="right"))]
        tokens.append(token)
        seen.append(token)
    return tokens, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FILE")
    out = parser.parse_args().out
    rng = np.random.Generator(np.random.PCG64(77))
    plain = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.0, repeat_window=64)
    variations = [
        {},
        dict(temperature=0.0),
        dict(temperature=0.5),
        dict(top_k=1),
        dict(top_k=5),
        dict(top_k=1000),
        dict(top_p=0.5),
        dict(top_p=0.95, temperature=2.0),
        dict(top_p=1e-6),
        dict(min_p=1.0),
        dict(min_p=0.1),
        dict(top_k=12, top_p=0.9, min_p=0.05, temperature=0.8),
        dict(repeat_penalty=1.3),
        dict(repeat_penalty=1.3, temperature=0.0),
        dict(repeat_penalty=2.0, repeat_window=4, temperature=0.0),
        dict(repeat_penalty=0.7, repeat_window=0),
        dict(repeat_penalty=1.1, repeat_window=8, top_k=20, top_p=0.8, min_p=0.02, temperature=1.4),
    ]
    cases = []
    for i, variation in enumerate(variations):
        # Sixteenths, so that there are ties; every third row is nearly flat.
        logits = np.round(rng.standard_normal(64) * (2.5 if i % 3 else 0.2) * 16) / 16
        case = dict(plain, seed=1000 + i, prompt=[int(t) for t in rng.integers(0, 64, 6)]) | variation
        case["logits"] = logits.tolist()
        case["tokens"], case["kept"] = run(case)
        cases.append(case)
    out.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases; kept: {[c['kept'][:1] for c in cases]}")


if __name__ == "__main__":
    sys.exit(main())
