"""Finds the adapters: every module of this package that ends with an `ADAPTER`, and those that installed packages add.

Others add theirs by the entry-point group `causeline.adapters`, whose values name an adapter object.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from ..engine.errors import CauselineError
from .base import Adapter

_GROUP = "causeline.adapters"


@cache
def available() -> tuple[Adapter, ...]:
    """All adapters in order of name. Raises CauselineError where two have the same name."""
    found: list[tuple[str, Adapter]] = []
    package = __package__ or ""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        adapter = getattr(importlib.import_module(f"{package}.{module.name}"), "ADAPTER", None)
        if adapter is not None:
            found.append((f"{package}.{module.name}", adapter))
    found += [(point.value, point.load()) for point in entry_points(group=_GROUP)]
    by_name: dict[str, tuple[str, Adapter]] = {}
    for origin, adapter in found:
        if adapter.name in by_name:
            raise CauselineError(
                f"Two adapters are called {adapter.name!r}: {by_name[adapter.name][0]} and {origin}.",
                "Rename or uninstall one of them.",
            )
        by_name[adapter.name] = (origin, adapter)
    return tuple(adapter for _, (_, adapter) in sorted(by_name.items()))
