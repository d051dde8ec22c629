"""JSON schemas of the YAML files, for editors (`# yaml-language-server: $schema=...`).

`python -m causeline.knowledge.schema` writes them from the models; a test fails when they are stale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..engine.rules import Cause, Mechanism, Sign
from .casefile import CaseFile
from .small_fabric import SmallFabric

FOLDER = Path(__file__).parent / "schema"

_MODELS: Mapping[str, type[BaseModel]] = {
    "cause": Cause,
    "mechanism": Mechanism,
    "sign": Sign,
    "cases": CaseFile,
    "topology": SmallFabric,
}


def schemas() -> dict[str, str]:
    """File name to text of every schema."""
    return {
        f"{name}.schema.json": json.dumps(_unwrapped(model.model_json_schema()), indent=1, sort_keys=True) + "\n"
        for name, model in _MODELS.items()
    }


def _unwrapped(part: Any) -> Any:
    """Descriptions come from docstrings: where their lines break is no difference."""
    if isinstance(part, dict):
        return {
            key: " ".join(value.split()) if key == "description" and isinstance(value, str) else _unwrapped(value)
            for key, value in part.items()
        }
    return [_unwrapped(item) for item in part] if isinstance(part, list) else part


def write() -> None:
    """Writes all schemas beside this module."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
