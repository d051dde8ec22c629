"""Networks for the solver benchmark: from a handful to 100,000 hypotheses, shaped like a fabric, from fixed seeds.

A place is a port: two causes, the queue that they fill (driven by its neighbour's queue along pause chains of eight),
and two signs of its own. Over the places lie shared signs: the first is the step time of the job, which every place
drives; of the others (tiers, rails, pods that overlap) each place drives two. Every sign was read; half of them are
present.
"""

from __future__ import annotations

import random

from causeline.engine.network import Likelihood, Network, Node, NodeKind

CAUSES_A_PLACE = 2
_CHAIN = 8  # places of a pause chain
_KINDS = 4  # ways in which places of an `alike` fabric were seen
PRESENT, ABSENT = Likelihood(0.0, 1.0), Likelihood(1.0, 0.0)


def fabric(hypotheses: int, shared: int, alike: bool = False) -> Network:
    """The network of this many hypotheses (causes at places) with so many shared signs seen present.

    `alike`: places come in four kinds, pause chains are left out, and all else is equal; otherwise every number is
    drawn for itself, so that no two places are the same.
    """
    dice = random.Random(f"{hypotheses} {shared} {alike}")
    hidden: list[Node] = []
    signs: list[Node] = []
    evidence: dict[str, Likelihood] = {}
    drivers: dict[str, list[tuple[str, float]]] = {f"shared{number}": [] for number in range(shared)}
    for place in range(max(1, hypotheses // CAUSES_A_PLACE)):
        draw = random.Random(f"kind {place % _KINDS}") if alike else dice
        name = f"port:{place:06d}"
        causes = [
            Node(f"cause{n}@{name}", NodeKind.CAUSE, name, 10 ** draw.uniform(-6, -3)) for n in range(CAUSES_A_PLACE)
        ]
        links = [(cause.id, draw.uniform(0.5, 0.95)) for cause in causes]
        if place % _CHAIN and not alike:
            links.append((f"queue@port:{place - 1:06d}", draw.uniform(0.3, 0.6)))
        queue = Node(f"queue@{name}", NodeKind.MECHANISM, name, 1e-3, tuple(links))
        hidden += [*causes, queue]
        for sign, parent in (("marks", queue.id), ("errors", causes[0].id)):
            links = [(parent, draw.uniform(0.6, 0.95))]
            signs.append(Node(f"{sign}@{name}", NodeKind.SIGN, name, draw.uniform(0.01, 0.05), tuple(links)))
            evidence[f"{sign}@{name}"] = PRESENT if draw.random() < 0.5 else ABSENT
        over = (
            sorted({0, 1 + place % (shared - 1), 1 + (place * 5 + 2) % (shared - 1)}) if shared > 1 else range(shared)
        )
        for number in over:
            drivers[f"shared{number}"].append((queue.id, draw.uniform(0.2, 0.6)))
    for name, parents in drivers.items():
        signs.append(Node(name, NodeKind.SIGN, None, 0.02, tuple(parents)))
        evidence[name] = PRESENT
    return Network((*hidden, *signs), evidence, "shared0" if shared else None)


def edges(network: Network) -> int:
    return sum(len(node.links) for node in network.nodes)
