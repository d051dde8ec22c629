"""The explanation network as it is stored in a result (DESIGN.md section 5)."""

from __future__ import annotations

from typing import Literal

from .result_base import Result


class NetworkLevel(Result):
    """A level of a sign above its first: leak and links of P(at this level or above)."""

    leak: float
    links: tuple[tuple[str, float], ...]


class NetworkNode(Result):
    """A cause, mechanism or sign of the explanation network, a noisy-OR of its links with leak and inhibitors.

    `likelihood`: P(what was seen | level), from level 0 (off) on; None where nothing was.
    """

    id: str
    kind: Literal["cause", "mechanism", "sign"]
    place: str | None
    leak: float
    links: tuple[tuple[str, float], ...]
    inhibitors: tuple[tuple[str, float], ...] = ()
    higher: tuple[NetworkLevel, ...] = ()
    likelihood: tuple[float, ...] | None = None


class NetworkRatio(Result):
    """What a finding says of the odds of one cause alone (a cell below the leak): as it was read, and if it were
    present or absent."""

    sign: str
    cause: str
    read: float
    present: float
    absent: float


class NetworkResidual(Result):
    """All that was folded: the weight of each pattern of what it reads of the network and sets in it.

    `weights` is the table in row-major order, an axis of `levels` values for each of `reads` and `sets`; it sums to 1.
    """

    reads: tuple[str, ...]
    sets: tuple[str, ...]
    levels: tuple[int, ...]
    weights: tuple[float, ...]


class ExplanationNetwork(Result):
    """The part of the network around the leading `causes`, exact: what else there is is folded into `residual` and
    into the leak of the symptom.

    `changeable`: the signs of which all that bears on them is part of it, so that another reading may be asked about.
    """

    causes: tuple[str, ...]
    symptom: str | None
    nodes: tuple[NetworkNode, ...]
    ratios: tuple[NetworkRatio, ...]
    changeable: tuple[str, ...]
    residual: NetworkResidual | None
