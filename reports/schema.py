"""The JSON Schema of an investigation. `python -m causeline.reports.schema` writes it when the model has changed."""

from __future__ import annotations

import json
from pathlib import Path

from ..engine.results import Investigation

SCHEMA_FILE = Path(__file__).with_name("investigation.schema.json")


def investigation_schema() -> str:
    """The schema as text, generated from the model (JSON Schema draft 2020-12)."""
    schema = Investigation.model_json_schema(by_alias=True, mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(investigation_schema(), encoding="utf-8")
