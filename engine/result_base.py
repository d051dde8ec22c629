"""What all result models have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Result(BaseModel):
    """Base of all result models: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
