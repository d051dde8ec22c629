"""Times the solver beside pgmpy and pyAgrum on networks of growing size: `python benchmarks/solver.py` from the root
(LARGEST=1200 in the environment leaves out larger networks, for a quick look).

Writes solver.json and solver.md beside itself. Each solver answers the same question, P(on | evidence) of every
hypothesis, building included, in a process of its own with a limit of time and memory: what runs out is shown as such,
and larger networks of that row are not tried. The peers get each shared sign as a chain of ORs, one link a place: its
flat table would have 2^places columns.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from solver_networks import CAUSES_A_PLACE, edges, fabric

from causeline.engine.network import Network, Node, NodeKind

SIZES = (4, 12, 40, 120, 400, 1_200, 4_000, 12_000, 40_000, 100_000)
ROWS = ((1, False), (4, True), (14, False), (4, False), (0, False), (8, False))
"""Shared signs, and whether places are alike."""
LARGEST = {0: 12_000, 8: 4_000, 14: 120}
"""Hypotheses up to which rows with many open bits are run: the cost grows with 2^bits."""
PEER_SECONDS, OWN_SECONDS, MEMORY_GB = 3.0, 60.0, 4.0
ORDERS = ("greedy", "WeightedMinFill", "MinNeighbors", "MinWeight", "MinFill")
"""Elimination orders of pgmpy: all of them. The fastest on a network of four hypotheses is used."""
_AT_LEAST = 0.3  # CPU seconds; shorter runs are repeated until they took that long together
_CHECKED = 1e-9

Posteriors = dict[str, float]
Result = dict[str, Any]


# -- the three solvers


def own(network: Network) -> tuple[Posteriors, int]:
    from causeline.engine.frontier.sweep import solve

    posterior = solve(network)
    return dict(posterior.probability), posterior.width


def divorced(network: Network) -> Iterator[tuple[str, tuple[str, ...], float, tuple[float, ...]]]:
    """Name, parents, leak and links of every node; signs with many parents as chains of ORs, one link a parent."""
    for node in network.nodes:
        if len(node.links) <= 3:
            yield node.id, tuple(parent for parent, _ in node.links), node.leak, tuple(p for _, p in node.links)
            continue
        yield from _chain(node)


def _chain(node: Node) -> Iterator[tuple[str, tuple[str, ...], float, tuple[float, ...]]]:
    (first, p), *others = node.links
    before = f"{node.id} 0"
    yield before, (first,), node.leak, (p,)
    for number, (parent, link) in enumerate(others, start=1):
        name = node.id if number == len(others) else f"{node.id} {number}"
        yield name, (before, parent), 0.0, (1.0, link)
        before = name


def table(leak: float, links: tuple[float, ...]) -> np.ndarray:
    """P(off), P(on) of a noisy-OR; axis 0 is the node, then an axis for each parent."""
    off = np.array(1.0 - leak)
    for p in links:
        off = np.multiply.outer(off, [1.0, 1.0 - p])
    return np.stack([off, 1.0 - off])


class Pgmpy:
    """VariableElimination, by the order that was fastest on the first network it was asked about."""

    def __init__(self) -> None:
        self._order: str | None = None

    def __call__(self, network: Network) -> tuple[Posteriors, int]:
        if self._order is None:
            times = {order: timed(lambda _, order=order: self._ask(network, order), network)[0] for order in ORDERS}
            self._order = min(times, key=times.__getitem__)
        return self._ask(network, self._order)

    def _ask(self, network: Network, order: str) -> tuple[Posteriors, int]:
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork

        model = DiscreteBayesianNetwork()
        tables = list(divorced(network))
        model.add_nodes_from(name for name, *_ in tables)
        model.add_edges_from((parent, name) for name, parents, *_ in tables for parent in parents)
        for name, parents, leak, links in tables:
            values = table(leak, links).reshape(2, -1)
            model.add_cpds(TabularCPD(name, 2, values, list(parents), [2] * len(parents)))
        evidence = {name: int(seen.on > 0) for name, seen in network.evidence.items()}
        engine = VariableElimination(model)
        found: Posteriors = {}
        for name in hypotheses(network):
            answer = engine.query([name], evidence, elimination_order=order, show_progress=False)
            found[name] = float(answer.values[1])
        return found, 0


def pyagrum(network: Network) -> tuple[Posteriors, int]:
    import pyagrum as gum

    model = gum.BayesNet()
    numbers: dict[str, int] = {}
    for name, parents, leak, links in divorced(network):
        numbers[name] = model.add(gum.LabelizedVariable(name, name, 2))
        for parent in parents:
            model.addArc(numbers[parent], numbers[name])
        values = table(leak, links)
        for state in np.ndindex(*(2,) * len(parents)):
            model.cpt(numbers[name])[dict(zip(parents, state, strict=True))] = [float(v) for v in values[:, *state]]
    engine = gum.LazyPropagation(model)
    for name, seen in network.evidence.items():
        engine.addEvidence(name, int(seen.on > 0))
    engine.makeInference()
    return {name: float(engine.posterior(name)[1]) for name in hypotheses(network)}, 0


def hypotheses(network: Network) -> list[str]:
    return [node.id for node in network.nodes if node.kind is NodeKind.CAUSE]


SOLVERS: dict[str, Callable[[Network], tuple[Posteriors, int]]] = {
    "causeline": own,
    "pyagrum": pyagrum,
    "pgmpy": Pgmpy(),
}


# -- one process a row


def run_row(solver: str, shared: int, alike: bool) -> None:
    """Sizes in growing order, a line of JSON each; the process dies at the limit."""
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY_GB * 2**30),) * 2)
    gc.disable()  # as the command line does: collecting what never becomes garbage costs a third of a large run
    SOLVERS[solver](fabric(CAUSES_A_PLACE * 2, 1))  # imports are no part of the time, nor is the choice of an order
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for size in sizes(shared):
        network = fabric(size, shared, alike)
        signal.setitimer(signal.ITIMER_PROF, OWN_SECONDS if solver == "causeline" else PEER_SECONDS)
        try:
            seconds, (found, width) = timed(SOLVERS[solver], network)
        except MemoryError:
            sys.exit(3)
        signal.setitimer(signal.ITIMER_PROF, 0)
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle) / 1024
        asked = {name: found[name] for name in hypotheses(network)[:2000]}
        told = {"hypotheses": size, "edges": edges(network), "seconds": seconds, "peak_mb": peak, "width": width}
        print(json.dumps(told | {"posteriors": asked}), flush=True)
        gc.collect()


def timed(ask: Callable[[Network], tuple[Posteriors, int]], network: Network) -> tuple[float, tuple[Posteriors, int]]:
    begun, spent, repeats = time.process_time(), 0.0, 0
    while spent < _AT_LEAST:  # CPU time may tick by hundredths of a second only
        answer = ask(network)
        spent, repeats = time.process_time() - begun, repeats + 1
    return spent / repeats, answer


def sizes(shared: int) -> list[int]:
    """Each place drives at most three shared signs, so few places cannot hold many open."""
    largest = min(LARGEST.get(shared, SIZES[-1]), int(os.environ.get("LARGEST", SIZES[-1])))
    return [size for size in SIZES if CAUSES_A_PLACE * shared <= size <= largest]


def row_of(solver: str, shared: int, alike: bool) -> Result:
    arguments = [sys.executable, __file__, "--row", solver, str(shared), str(int(alike))]
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    points = [json.loads(line) for line in done.stdout.splitlines()]
    limit = OWN_SECONDS if solver == "causeline" else PEER_SECONDS
    if done.returncode == 0:
        ended = ""
    elif done.returncode == -signal.SIGPROF:
        ended = f"> {limit:.0f} s"
    elif done.returncode in (3, -signal.SIGKILL) or "MemoryError" in done.stderr or "bad_alloc" in done.stderr:
        ended = f"> {MEMORY_GB:.0f} GB"
    else:
        ended = (done.stderr.strip().splitlines() or ["died"])[-1][:60]
    return {"solver": solver, "shared": shared, "alike": alike, "points": points, "ended": ended}


# -- the page


def measure() -> Iterator[Result]:
    """The result after each row: a run that is stopped leaves what it has."""
    rows: list[Result] = []
    for shared, alike in ROWS:
        found = {solver: row_of(solver, shared, alike) for solver in SOLVERS}
        rows.append(compared(shared, alike, found))
        print(f"{shared} shared signs{', alike' if alike else ''}: done", file=sys.stderr, flush=True)
        yield {"date": datetime.now(UTC).date().isoformat(), "versions": versions(), "rows": rows}


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("causeline", "pyagrum", "pgmpy")}


def compared(shared: int, alike: bool, found: dict[str, Result]) -> Result:
    by_size = {solver: {point["hypotheses"]: point for point in result["points"]} for solver, result in found.items()}
    points = []
    for size in sizes(shared):
        mine = by_size["causeline"].get(size)
        peers: dict[str, Any] = {}
        for peer in ("pyagrum", "pgmpy"):
            theirs = by_size[peer].get(size)
            peers[peer] = theirs["seconds"] if theirs else found[peer]["ended"]
            if theirs and mine:
                gap = max(abs(theirs["posteriors"][name] - p) for name, p in mine["posteriors"].items())
                peers[f"{peer} differs by"] = gap
        own_point = {k: v for k, v in mine.items() if k != "posteriors"} if mine else {"hypotheses": size}
        points.append(own_point | peers)
    return {
        "shared": shared,
        "alike": alike,
        "points": points,
        "growth": growth(points),
        "ended": found["causeline"]["ended"],
    }


def growth(points: list[Result]) -> float | None:
    """Exponent of the time against hypotheses, fitted over sizes of 1,200 and more."""
    large = [point for point in points if point.get("seconds") and point["hypotheses"] >= 1200]
    if len(large) < 3:
        return None
    logs = np.log([[point["hypotheses"], point["seconds"]] for point in large])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def page(result: Result) -> str:
    worst = max(
        (value for row in result["rows"] for p in row["points"] for key, value in p.items() if "differs" in key),
        default=0.0,
    )
    lines = [
        "# The solver beside pgmpy and pyAgrum",
        "",
        f"{result['date']}, {', '.join(f'{name} {which}' for name, which in result['versions'].items())}.",
        "",
        "CPU seconds for the posteriors of all hypotheses, building included (`python benchmarks/solver.py`; networks",
        "of `solver_networks.py`, half of the signs present). `open` is the number of bits open at once, `MB` the",
        f"growth of the process. Peers stop after {PEER_SECONDS:.0f} s or {MEMORY_GB:.0f} GB. pgmpy is Variable-",
        "Elimination with the fastest of its five orders, pyAgrum LazyPropagation. Posteriors",
        f"differ by at most {worst:.1e}{'' if worst <= _CHECKED else ' (TOO MUCH)'}. x: how many",
        "times slower than Causeline.",
    ]
    for row in result["rows"]:
        kind = "places of four kinds" if row["alike"] else "no two places the same"
        lines += ["", f"## {row['shared']} shared signs, {kind}", ""]
        if row["growth"] is not None:
            lines += [f"Growth exponent from 1,200 hypotheses on: {row['growth']:.2f}.", ""]
        lines += ["| hypotheses | edges | open | Causeline | MB | pyAgrum | x | pgmpy | x |", "|-|-|-|-|-|-|-|-|-|"]
        for point in row["points"]:
            if "seconds" not in point:
                lines.append(f"| {point['hypotheses']:,} | | | {row['ended']} | | | | | |")
                continue
            cells = [f"{point['hypotheses']:,}", f"{point['edges']:,}", str(point["width"])]
            cells += [told(point["seconds"]), f"{point['peak_mb']:.0f}"]
            for peer in ("pyagrum", "pgmpy"):
                value = point[peer]
                is_time = isinstance(value, float)
                cells += [told(value) if is_time else value, f"{value / point['seconds']:.0f}" if is_time else ""]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def told(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def main() -> None:
    if sys.argv[1:2] == ["--row"]:
        run_row(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
        return
    here = Path(__file__).parent
    for result in measure():
        (here / "solver.json").write_text(json.dumps(result, indent=1) + "\n")
        (here / "solver.md").write_text(page(result))


if __name__ == "__main__":
    main()
