"""Is one set of values larger than another?

The Mann-Whitney test: by its normal approximation, or exactly where few values would make that wrong.
"""

from __future__ import annotations

import math

import numpy as np

from ..telemetry import Floats


def ranks(values: Floats) -> Floats:
    """Ranks from 1, ties at their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return found


def rank_test_p(before: Floats, after: Floats) -> float:
    """One-sided p of the Mann-Whitney test that `after` is larger (normal approximation, fine from 10 values a
    side)."""
    m, n = len(before), len(after)
    joined = np.concatenate((before, after))
    _, counts = np.unique(joined, return_counts=True)
    statistic = float(np.sum(ranks(joined)[m:])) - n * (n + 1) / 2
    ties = float(np.sum(counts**3 - counts)) / ((m + n) * (m + n - 1))
    deviation = math.sqrt(m * n / 12 * (m + n + 1 - ties))
    return 0.5 * math.erfc((statistic - m * n / 2) / (deviation * math.sqrt(2))) if deviation > 0 else 1.0


def exact_rank_test_p(before: Floats, after: Floats) -> float:
    """The same p without approximation: of all ways to deal the joined values to the two sides, the share that ranks
    `after` at least as high. Ties count at their mean rank.

    Meant for a side of few values: the cost grows with the smaller side times the square of all.
    """
    m, n = len(before), len(after)
    # Twice a mean rank is a whole number: sums can index an array.
    doubled = np.rint(2 * ranks(np.concatenate((before, after)))).astype(np.int64)
    few, chosen = (n, doubled[m:]) if n <= m else (m, doubled[:m])
    ways = np.zeros((few + 1, int(doubled.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in doubled.tolist():
        ways[1:, rank:] += ways[:-1, :-rank]
    total, observed = ways[few], int(chosen.sum())
    hits = total[observed:] if n <= m else total[: observed + 1]
    return float(hits.sum() / total.sum())
