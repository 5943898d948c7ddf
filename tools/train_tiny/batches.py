"""Windows of the corpora's tokens: for training by a seeded order that is a function of the step,
so that a resumed run goes on with the batches it would have had; for evaluation in order."""
from functools import lru_cache
from pathlib import Path

import numpy
import torch

from corpora import CORPORA

AHEAD = 4  # tokens of a window beyond its inputs: targets of the model and of three drafts


class Data:
    """data.npz as data.py writes it."""

    def __init__(self, path: Path):
        with numpy.load(path) as arrays:
            self.arrays = {name: arrays[name] for name in arrays.files}
        self.token_bytes = torch.from_numpy(self.arrays["token_bytes"].astype(numpy.int64))

    def tokens(self, corpus: str, part: str) -> numpy.ndarray:
        return self.arrays[f"{corpus}.{part}"]


class TrainingWindows:
    """Every batch has the same number of windows of each corpus. A corpus is gone through in a new
    order, from a new offset, each time."""

    def __init__(self, data: Data, length: int, batch: int, prose_share: float, seed: int):
        parts = [data.tokens(corpus, "train") for corpus in CORPORA]
        self.stream = torch.from_numpy(numpy.concatenate(parts).astype(numpy.int32))
        self.length, self.seed = length, seed
        prose = min(max(round(batch * prose_share), 1), batch - 1)
        self.counts = (prose, batch - prose)
        self.firsts = (0, parts[0].size)
        self.windows = [(part.size - AHEAD) // length - 1 for part in parts]
        if min(self.windows) < 1:
            raise ValueError(f"a corpus is shorter than two windows of {length} tokens")

    @lru_cache(maxsize=4)
    def order(self, corpus: int, epoch: int) -> numpy.ndarray:
        draw = numpy.random.default_rng((self.seed, corpus, epoch))
        offset = draw.integers(self.length)
        starts = draw.permutation(self.windows[corpus]) * self.length + offset
        return starts + self.firsts[corpus]

    def starts(self, step: int) -> torch.Tensor:
        """Where the windows of a step begin in the stream, [batch]."""
        chosen = []
        for corpus, count in enumerate(self.counts):
            for index in range(step * count, (step + 1) * count):
                epoch, place = divmod(index, self.windows[corpus])
                chosen.append(self.order(corpus, epoch)[place])
        return torch.tensor(numpy.array(chosen), dtype=torch.int64)

    def epochs(self, step: int) -> list[float]:
        """How often each corpus was gone through by then."""
        return [step * count / windows for count, windows in zip(self.counts, self.windows)]


def gather(stream: torch.Tensor, starts: torch.Tensor, length: int) -> torch.Tensor:
    """[batch, length + AHEAD] tokens."""
    columns = torch.arange(length + AHEAD, device=stream.device)
    return stream[starts[:, None] + columns].long()


def in_order(tokens: numpy.ndarray, length: int, most: int) -> torch.Tensor:
    """Windows without overlap of inputs, [n, length + AHEAD]; where there are more than `most`, so
    many of them, evenly spaced."""
    n = (tokens.size - AHEAD) // length
    chosen = range(n) if n <= most else [i * n // most for i in range(most)]
    rows = [tokens[i * length:(i + 1) * length + AHEAD] for i in chosen]
    return torch.from_numpy(numpy.stack(rows).astype(numpy.int64))
