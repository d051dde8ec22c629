"""Weight of evidence: what each finding says of a hypothesis given all the others, by leaving it out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..around import Nearby, Surroundings
from ..compile import Compiled
from ..frontier.sweep import Posterior, solve
from ..network import Likelihood
from ..verdicts import Verdict, weight

LARGEST_WEIGHT = 12.0
"""Largest |weight| told: beyond it the complement of a double-precision probability has no digits left."""

MOST_NODES = 100_000
"""Nodes summed in all for exact weights (judgement: some seconds of one core)."""

Weights = Mapping[str, Mapping[str, float]]
"""Hypothesis -> sign node -> log10 Bayes factor of the finding given all other findings."""


class LeaveOut:
    """Leaves findings of one compiled network out, one at a time."""

    def __init__(self, compiled: Compiled, posterior: Posterior, surroundings: Surroundings) -> None:
        self._compiled = compiled
        self._posterior = posterior
        self._surroundings = surroundings
        self._own: dict[str, list[str]] = defaultdict(list)
        for node, ratios in compiled.own_ratios.items():
            for sign in ratios:
                self._own[sign].append(node)

    def weights(self, verdicts: Iterable[Verdict], most_nodes: int = MOST_NODES) -> Weights:
        """For each shown hypothesis and each finding it reaches, log10 of its odds with all findings over its odds
        with all but this one: 0 for what the rest already says, however strong it is alone.

        Beyond `most_nodes` what a finding says by itself is taken instead: an upper bound in size where the others say
        the same. Findings of the leading hypotheses come first.
        """
        targets: dict[str, list[str]] = defaultdict(list)
        alone: dict[tuple[str, str], float] = {}
        for verdict in verdicts:
            for one in verdict.relevances:
                sign, node = f"{one.finding.sign}@{one.finding.scope}", verdict.hypothesis.id
                targets[sign].append(node)
                alone[(sign, node)] = max(-LARGEST_WEIGHT, min(LARGEST_WEIGHT, weight(one)))
        left = most_nodes
        weights: dict[str, dict[str, float]] = defaultdict(dict)
        for sign, nodes in targets.items():
            if left <= 0:
                for node in nodes:
                    weights[node][sign] = alone[(sign, node)]
                continue
            network = self._surroundings.without(nodes, self.changes(sign))
            left -= len(network.nodes)
            without = solve(network, self._surroundings.near(nodes).posterior).probability
            for node in nodes:
                weights[node][sign] = _log_odds_ratio(self._posterior.probability[node], without[node])
        return weights

    def near(self, nodes: Iterable[str], sign: str) -> Nearby:
        """The part of the network with some nodes and all that a sign bears on."""
        return self._surroundings.near((*nodes, *self._surroundings.parents(sign), *self._own[sign]))

    def changes(self, sign: str) -> dict[str, Likelihood | None]:
        """The evidence that goes with one finding: on its sign, and on causes that it counts against alone."""
        changes: dict[str, Likelihood | None] = {sign: None}
        for node in self._own[sign]:
            others = [ratio for name, ratio in self._compiled.own_ratios[node].items() if name != sign]
            changes[node] = Likelihood(1.0, math.prod(others)) if others else None
        return changes


def _log_odds_ratio(with_it: float, without: float) -> float:
    """Log10 of the odds of one probability over those of the other, within what double precision can tell."""
    ratio = _log_odds(with_it) - _log_odds(without)
    return 0.0 if math.isnan(ratio) else max(-LARGEST_WEIGHT, min(LARGEST_WEIGHT, round(ratio, 9)))  # less is rounding


def _log_odds(probability: float) -> float:
    if probability <= 0.0:
        return -math.inf
    return math.log10(probability) - math.log10(1.0 - probability) if probability < 1.0 else math.inf
