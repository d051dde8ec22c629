"""Writes the scoreboards of this folder: `python benchmarks/scores.py NAME...` with sim, fixture, drill or removal.

`sim` takes two minutes and needs ../shared/sim; `drill` draws 300 incidents: half an hour on two cores; `removal` takes
telemetry away from 24.
A scoreboard is fixed: the same bundles or seeds each time, so that a worse engine shows in review.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from causeline.engine.scoring.drill import Drill
from causeline.engine.scoring.text import as_text

HERE = Path(__file__).parent
ROOT = HERE.parent
BOARDS = {
    "sim": ("--corpus", str(ROOT.parent / "shared" / "sim")),
    "fixture": ("--corpus", str(ROOT / "fixtures" / "incidents"), "--corpus", str(ROOT / "fixtures" / "quiet")),
    "drill": ("--seed", "50000", "--count", "300", "--healthy", "10", "--pairs", "10", "--jobs", "2"),
    "removal": ("--seed", "30000", "--count", "24", "--healthy", "10", "--removed", "0,25,50,75", "--jobs", "2"),
}


def main(names: list[str]) -> None:
    """Runs the boards of these names, all when none is given."""
    for name in names or list(BOARDS):
        board = HERE / f"{name}_scores.json"
        command = [sys.executable, "-m", "causeline.engine", "drill", *BOARDS[name], "-o", str(board)]
        subprocess.run(command, check=True)
        found = Drill.model_validate_json(board.read_text(encoding="utf-8"))
        board.with_suffix(".md").write_text(as_text(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
