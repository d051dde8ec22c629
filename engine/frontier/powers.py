"""What many blocks together do to the bits they raise: products and powers of tables by pattern.

A bit ends at the highest level to which any block raises it. The product of two tables is that sum over pairs of
patterns; it is never taken as a difference of cumulative sums, so every term is non-negative and a prior of 1e-9 keeps
its digits: at level k is (first at k, second at most k) or (first below k, second at k). The n-th power takes about 2
log2(n) products: no count of members is enumerated, and none is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from math import prod

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]

_MOST_PATTERNS = 32
"""Patterns that one matrix takes at once, five bits: 243 x 32 numbers (judgement)."""


def product(first: Table, second: Table, lengths: Sequence[int]) -> Table:
    """The table of two independent blocks; the last axes, of these lengths, are those of the bits that they raise, the
    others are broadcast."""
    parts = _parts(tuple(lengths))
    kept = first.ndim - len(lengths)
    shape = np.broadcast_shapes(first.shape[:kept], second.shape[:kept])
    sizes = [prod(part) for part in parts]
    left, right = first.reshape(*first.shape[:kept], *sizes), second.reshape(*second.shape[:kept], *sizes)
    for axis, part in enumerate(parts):
        one, other, _ = _matrices(part)
        left, right = _applied(one, left, kept + axis), _applied(other, right, kept + axis)
    result = left * right
    for axis, part in enumerate(parts):
        result = _applied(_matrices(part)[2], result, kept + axis)
    table: Table = result.reshape(*shape, *lengths)
    return table


def power(table: Table, counts: Sequence[int], lengths: Sequence[int]) -> tuple[Table, Table]:
    """For each row (axis 0) the table of so many blocks alike, scaled to a largest value of 1, and the natural
    logarithm of what was divided out.

    A count of 0 gives the table of no block at all: no bit raised.
    """
    left = np.asarray(counts)
    result = np.zeros((*table.shape[: table.ndim - len(lengths)], prod(lengths)))
    result[..., 0] = 1.0
    result = result.reshape(table.shape)
    log = np.zeros(len(table))
    base, base_log = _scaled(table)
    while left.any():
        odd = left % 2 == 1
        if odd.any():
            result[odd], more_log = _scaled(product(result[odd], base[odd], lengths))
            log[odd] += base_log[odd] + more_log
        left = left // 2
        if left.any():
            base, more_log = _scaled(product(base, base, lengths))
            base_log = 2 * base_log + more_log
    return result, log


def _scaled(table: Table) -> tuple[Table, Table]:
    top = table.reshape(len(table), -1).max(axis=1)
    top = np.where(top > 0.0, top, 1.0)  # evidence that is impossible stays so
    return table / top.reshape((-1,) + (1,) * (table.ndim - 1)), np.log(top)


def _applied(matrix: Table, table: Table, axis: int) -> Table:
    moved: Table = np.moveaxis(np.moveaxis(table, axis, -1) @ matrix.T, -1, axis)
    return moved


@cache
def _parts(lengths: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The bits, in runs that one matrix takes."""
    parts: list[tuple[int, ...]] = []
    for length in lengths:
        if parts and prod(parts[-1]) * length <= _MOST_PATTERNS:
            parts[-1] = (*parts[-1], length)
        else:
            parts.append((length,))
    return tuple(parts)


@cache
def _matrices(lengths: tuple[int, ...]) -> tuple[Table, Table, Table]:
    """What the first and the second table are multiplied by, before their values are multiplied pair by pair, and what
    that product is multiplied by."""
    by_bit = [_of_one_bit(length) for length in lengths]
    first, second, joined = (reduce(np.kron, matrices) for matrices in zip(*by_bit, strict=True))
    return first, second, joined


def _of_one_bit(length: int) -> tuple[Table, Table, Table]:
    at = np.eye(length)
    at_most = np.tril(np.ones((length, length)))
    first = np.concatenate([at, at_most[:-1]])  # at k, then below k
    second = np.concatenate([at_most, at[1:]])  # at most k, then at k
    joined = np.concatenate([at, at[:, 1:]], axis=1)
    return first, second, joined
