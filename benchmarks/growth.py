"""How the time and memory of a verdict grow with the fabric: `python benchmarks/growth.py [FABRIC ...]`.

One drawn bundle a fabric (`phy.optic_degraded`, seed 31); each is read and investigated in a process of its own. Times
are CPU seconds of all its threads, memory is the peak of the resident set.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FABRICS = ("rail-64", "rail-512", "rail-4096")
SEED, CAUSE = 31, "phy.optic_degraded"


def draw(fabric: str, folder: Path) -> None:
    """Write the bundle of a fabric."""
    from causeline.fixtures import drills
    from causeline.fixtures.write_tidy import write_tidy

    write_tidy(drills.bundle(drills.play(drills.draw(SEED, [CAUSE], fabric))), folder)


def measure(bundle: Path) -> dict[str, float]:
    """Hypotheses, CPU seconds to read and to investigate, and peak memory in MB, of this process."""
    from causeline import adapters, knowledge
    from causeline.engine.investigate import examine

    rules = knowledge.load()
    begun = time.process_time()
    reading = adapters.read(bundle)
    read = time.process_time()
    case = examine(reading, rules)
    ended = time.process_time()
    return {
        "hypotheses": len(case.compiled.hypotheses),
        "read_s": round(read - begun, 1),
        "verdict_s": round(ended - read, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def exponent(small: dict[str, float], large: dict[str, float], what: str) -> float:
    """d log(what) / d log(hypotheses) from one fabric to the next."""
    return math.log(large[what] / small[what]) / math.log(large["hypotheses"] / small["hypotheses"])


def main(fabrics: tuple[str, ...]) -> None:
    found: list[dict[str, float]] = []
    print("| fabric | hypotheses | read (s) | verdict (s) | peak (MB) | exponent of verdict | of memory |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for fabric in fabrics:
            bundle = Path(folder) / fabric
            subprocess.run([sys.executable, __file__, "--draw", fabric, str(bundle)], check=True)
            told = subprocess.run(
                [sys.executable, __file__, "--measure", str(bundle)], check=True, stdout=subprocess.PIPE
            )
            found.append(json.loads(told.stdout))
            own = found[-1]
            grown = [
                f"{exponent(found[-2], own, what):.2f}" if len(found) > 1 else "" for what in ("verdict_s", "peak_mb")
            ]
            numbers = [f"{own[name]:g}" for name in ("hypotheses", "read_s", "verdict_s", "peak_mb")]
            print(f"| {' | '.join([fabric, *numbers, *grown])} |", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--draw", fabric, path]:
            draw(fabric, Path(path))
        case ["--measure", path]:
            print(json.dumps(measure(Path(path))))
        case names:
            main(tuple(names) or FABRICS)
