"""A trigram model with interpolated modified Kneser-Ney smoothing (Chen & Goodman 1998): each order
backs off to the next lower one with the mass that its discounts leave, the lowest to the uniform
distribution, so that probabilities sum to 1. Of each order's three discounts, estimated from counts
of counts, there is nothing to tune.
"""
import numpy


class Level:
    """Discounted counts of n-grams as keys context * vocabulary + token."""

    def __init__(self, keys: numpy.ndarray, counts: numpy.ndarray, vocabulary: int):
        self.keys, self.counts, self.vocabulary = keys, counts, vocabulary
        self.discounts = discounts(counts)
        contexts = keys // vocabulary
        self.contexts, group = numpy.unique(contexts, return_inverse=True)
        self.totals = numpy.bincount(group, counts)
        self.left = numpy.bincount(group, self.discounts[numpy.minimum(counts, 3)]) / self.totals

    def probability(self, contexts, tokens, lower):
        """lower: probabilities of the next lower order. A context never seen is left to it."""
        at, known = find(self.contexts, contexts)
        key_at, seen = find(self.keys, contexts * self.vocabulary + tokens)
        count = numpy.where(seen, self.counts[key_at], 0)
        share = (count - self.discounts[numpy.minimum(count, 3)]) / self.totals[at]
        return numpy.where(known, share + self.left[at] * lower, lower)


def discounts(counts: numpy.ndarray) -> numpy.ndarray:
    """Of counts 0 (none), 1, 2, and 3 or more; kept within what leaves all terms positive."""
    n1, n2, n3, n4 = (max(int((counts == i).sum()), 1) for i in range(1, 5))
    y = n1 / (n1 + 2 * n2)
    raw = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return numpy.array([0.0] + [min(max(d, 0.05), i + 0.95) for i, d in enumerate(raw)])


def find(sorted_keys, keys):
    """Places of keys, and whether they are there."""
    at = numpy.minimum(numpy.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return at, sorted_keys[at] == keys


class Trigram:
    def __init__(self, tokens: numpy.ndarray, vocabulary: int):
        self.vocabulary = vocabulary
        x = tokens.astype(numpy.int64)
        keys = (x[:-2] * vocabulary + x[1:-1]) * vocabulary + x[2:]
        level = numpy.unique(keys, return_counts=True)
        self.levels = [Level(*level, vocabulary)]
        for width in (vocabulary ** 2, vocabulary):  # kinds of n-grams that end so
            level = numpy.unique(level[0] % width, return_counts=True)
            self.levels.append(Level(*level, vocabulary))

    def nats(self, tokens: numpy.ndarray) -> numpy.ndarray:
        """-log p of tokens[2:], each behind the two before it."""
        x = tokens.astype(numpy.int64)
        contexts = (x[:-2] * self.vocabulary + x[1:-1], x[1:-1], numpy.zeros_like(x[2:]))
        p = numpy.full(len(x) - 2, 1 / self.vocabulary)
        for level, context in zip(reversed(self.levels), reversed(contexts)):
            p = level.probability(context, x[2:], p)
        return -numpy.log(p)

    def distribution(self, first: int, second: int) -> numpy.ndarray:
        """Probabilities of all tokens behind two: for the check that they sum to 1."""
        rows = numpy.zeros(3 * self.vocabulary, numpy.int64)
        rows[0::3], rows[1::3], rows[2::3] = first, second, numpy.arange(self.vocabulary)
        return numpy.exp(-self.nats(rows)[0::3])
