"""Raw telemetry to facts: one module a format, found by what it says of itself, and the reading of whole bundles."""

from __future__ import annotations

from .base import Adapter, Hints
from .reading import read, try_file
from .registry import available

__all__ = ["Adapter", "Hints", "available", "read", "try_file"]
