"""Each adapter on the case folders of `fixtures/adapters/<adapter>/<case>/`, and what every adapter promises.

A case is raw files, `about.yaml` (platform, version, provenance, the hints a bundle would give) and `expected.json`
(facts and issues)."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import pkgutil
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from causeline import adapters
from causeline.adapters import Hints, registry
from causeline.engine.errors import CauselineError
from causeline.engine.facts import Event, Fact, JobPlacement, Provenance, Reading, ReadIssue, RouteState, Series
from causeline.engine.metrics import METRICS

CASES = Path(__file__).parents[1] / "fixtures" / "adapters"
SAMPLES = Path(__file__).parents[2] / "shared" / "samples"
NOT_RAW = {"about.yaml", "expected.json"}


def case_folders() -> list[Path]:
    return sorted(path.parent for path in CASES.glob("*/*/about.yaml"))


def read_case(case: Path, folder: Path) -> Reading:
    """Reads the raw files of a case as a bundle whose incident.yaml holds the hints of about.yaml."""
    about = yaml.safe_load((case / "about.yaml").read_text())
    bundle = folder / case.parent.name
    bundle.mkdir()
    raw = sorted(path for path in case.iterdir() if path.name not in NOT_RAW)
    for path in raw:
        shutil.copy(path, bundle / path.name)
    files = [{"path": path.name, **about.get("hints", {}), **about.get("files", {}).get(path.name, {})} for path in raw]
    (bundle / "incident.yaml").write_text(yaml.safe_dump({**about.get("incident", {}), "files": files}))
    return adapters.read(bundle)


def when(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def readable(value: object) -> object:
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple):
        return [readable(one) for one in value]
    return value


def described(fact: Fact | ReadIssue) -> dict[str, object]:
    """A fact as a person wants to read it: what, where, times as text, the record it came from."""
    if isinstance(fact, ReadIssue):
        return {
            "issue": fact.code,
            "level": fact.level.value,
            "file": fact.source,
            "record": fact.record,
            "message": fact.message,
        }
    source = f"{fact.provenance.source} {fact.provenance.record}".strip()
    if isinstance(fact, Series):
        place = "/".join(part for part in (fact.device, fact.port.replace("/", "~"), fact.qualifier) if part)
        lines = fact.lines or ("",) * len(fact.times)
        samples = [
            [when(at), readable(value), line] for at, value, line in zip(fact.times, fact.values, lines, strict=True)
        ]
        return {"metric": fact.metric, "place": place, "samples": samples, "read_at": source}
    shown: dict[str, object] = {"fact": type(fact).__name__}
    for one in fields(fact):
        value = getattr(fact, one.name)
        if one.name in ("at", "start", "end"):
            shown[one.name] = when(value)
        elif isinstance(fact, RouteState) and one.name == "next_hops":
            shown[one.name] = [f"{hop.interface} via {hop.address}".removesuffix(" via ") for hop in fact.next_hops]
        elif not isinstance(value, Provenance):
            shown[one.name] = dict(value) if isinstance(fact, Event) and one.name == "details" else readable(value)
    return {**shown, "read_at": source}


def expected_text(reading: Reading) -> str:
    found = [described(one) for one in (*reading.facts, *reading.issues)]
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in found) + "\n]\n"


@pytest.mark.parametrize("case", case_folders(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_case(case: Path, tmp_path: Path, matches_golden: Callable[[Path, str], None]) -> None:
    reading = read_case(case, tmp_path)
    claimed = {file.adapter for file in reading.files if file.path != "incident.yaml"}
    assert claimed == {case.parent.name}, f"claimed by {claimed}; issues: {reading.issues}"
    matches_golden(case / "expected.json", expected_text(reading))


@pytest.mark.parametrize("adapter", adapters.available(), ids=lambda adapter: adapter.name)
def test_every_adapter_has_its_cases_and_says_what_it_does(adapter: adapters.Adapter, tmp_path: Path) -> None:
    cases = [case for case in case_folders() if case.parent.name == adapter.name]
    assert {"normal", "damaged"} <= {case.name for case in cases}
    emitted: set[str] = set()
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        for fact in read_case(case, folder).facts:
            emitted.add(fact.metric if isinstance(fact, Series) else type(fact).__name__)
    assert tuple(sorted(emitted)) == adapter.emits
    assert adapter.reads and adapter.absence


@pytest.mark.parametrize("adapter", adapters.available(), ids=lambda adapter: adapter.name)
def test_every_adapter_shows_its_input_and_its_fields(adapter: adapters.Adapter) -> None:
    shown = sys.modules[type(adapter).__module__].__doc__ or ""
    assert re.search(r"^    \S", shown, re.MULTILINE), "no sample input"
    assert re.search(r"^\|.*\|$", shown, re.MULTILINE), "no table of fields"
    assert "Documentation: " in shown or "No standard" in shown


@pytest.mark.parametrize("adapter", adapters.available(), ids=lambda adapter: adapter.name)
def test_damaged_case_is_reported_and_not_a_crash(adapter: adapters.Adapter, tmp_path: Path) -> None:
    issues = read_case(CASES / adapter.name / "damaged", tmp_path).issues
    assert issues
    assert all(issue.code != "adapter-crash" and issue.message for issue in issues)


def test_metrics_and_values_of_all_cases_are_canonical(tmp_path: Path) -> None:
    for number, case in enumerate(case_folders()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for fact in read_case(case, folder).facts:
            if isinstance(fact, Series):
                metric = METRICS[fact.metric]
                assert bool(fact.qualifier) == (metric.qualifier != "none"), f"{case}: {fact.metric} {fact.qualifier!r}"
                assert all(value is None or not math.isnan(value) for value in fact.values)
                assert len(fact.times) == len(fact.values) and len(fact.lines) in (0, len(fact.times))
            if isinstance(fact, JobPlacement):
                assert fact.hosts


def test_two_adapters_of_one_name_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        value = "another_package:ADAPTER"

        def load(self) -> adapters.Adapter:
            return named

    named = next(adapter for adapter in adapters.available() if adapter.name == "ip-link")
    monkeypatch.setattr(registry, "entry_points", lambda group: [Installed()] if group == "causeline.adapters" else [])
    adapters.available.cache_clear()
    with pytest.raises(CauselineError, match="another_package:ADAPTER"):
        adapters.available()
    adapters.available.cache_clear()


@pytest.mark.parametrize("module", sorted(module.name for module in pkgutil.iter_modules(adapters.__path__)))
def test_examples_in_docstrings_hold(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"causeline.adapters.{module}")).failed == 0


@pytest.mark.skipif(not SAMPLES.exists(), reason="the real samples (../shared/samples) are not on this machine")
def test_real_samples_are_read_without_a_crash() -> None:
    hints = Hints(device="device-1", time="20261117T203000Z", netdev="eth0", rdma_device="mlx5_0", job="job-1")
    claimed: dict[str, int] = {}
    for path in sorted(SAMPLES.rglob("*")):
        if path.is_file() and path.suffix != ".parquet":
            reading = adapters.try_file(path, hints)
            assert not [issue for issue in reading.issues if issue.code in ("adapter-crash", "two-adapters")], path
            for file in reading.files:
                if file.adapter:
                    claimed[file.adapter] = claimed.get(file.adapter, 0) + file.facts
    without_sample = {"ibdev2netdev", "step-times"}
    without_sample |= {adapter.name for adapter in adapters.available() if adapter.name.startswith("tidy-")}
    refused = {
        "ip-link",
        "kernel-journal",
        "switch-syslog",
    }  # anonymised MACs; seconds since boot; no year and no window
    assert set(claimed) == {adapter.name for adapter in adapters.available()} - without_sample
    assert {name for name, facts in claimed.items() if facts == 0} == refused
