"""Variants of the hand-made investigation INC-4127 for the report tests: healthy, tied, hostile, empty, very large."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from causeline.engine.results import Hypothesis, Investigation, MissingReading, TieClass, UnknownCause

CLOCK = "%Y-%m-%dT%H:%M:%S.%fZ"
HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE leaf; --",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "שדרה-03 עלה",
    "leaf\u202e70-fael\u202c",
    "leaf\x1b[31m-07\x07",
    "]]></style></svg><b>x</b>",
    "[red]leaf[/red] `code` | a | b",
    "&lt;b&gt; &amp;",
    "x" * 300,
    "日本語リーフ" * 20,
)


@cache
def inc_4127() -> Investigation:
    text = (Path(__file__).parent / "investigations" / "inc-4127.json").read_text(encoding="utf-8")
    return Investigation.from_json(text)


def named(name: str) -> Investigation:
    """The investigation with `name` wherever a name or a statement from telemetry is shown."""
    base = inc_4127()
    incident = base.incident.model_copy(update={"fabric": name, "job": name, "id": name})
    first = base.hypotheses[0]
    place = first.places[0].model_copy(update={"device": name, "port": name})
    missing = MissingReading(sign=name, place=f"device:{name}", read=name)
    hypothesis = first.model_copy(
        update={
            "title": name,
            "scope": f"device:{name}",
            "places": (place,),
            "reason": name,
            "remedy": name,
            "first_checks": (name,),
            "missing": (missing,),
        }
    )
    ruled_out = base.hypotheses[1].model_copy(update={"title": name, "reason": name})
    fact = base.findings[0].facts[0].model_copy(update={"file": name, "record": name, "excerpt": name})
    finding = base.findings[0].model_copy(update={"statement": name, "scope": f"device:{name}", "facts": (fact,)})
    chain = tuple(step.model_copy(update={"scope": f"device:{name}", "statement": name}) for step in base.chain)
    timeline = tuple(
        entry.model_copy(update={"scope": name, "statement": name, "fact": fact if entry.fact else None})
        for entry in base.timeline
    )
    telemetry = tuple(series.model_copy(update={"label": name}) for series in base.telemetry)
    return base.model_copy(
        update={
            "incident": incident,
            "summary": name,
            "impact": tuple(impact.model_copy(update={"job": name, "tenant": name}) for impact in base.impact),
            "hypotheses": (hypothesis, ruled_out, *base.hypotheses[2:]),
            "findings": (finding, *base.findings[1:]),
            "chain": chain,
            "timeline": timeline,
            "telemetry": telemetry,
            "next_checks": tuple(check.model_copy(update={"read": name, "place": name}) for check in base.next_checks),
            "coverage": tuple(row.model_copy(update={"reason": name}) for row in base.coverage),
            "read_issues": tuple(row.model_copy(update={"file": name, "message": name}) for row in base.read_issues),
        }
    )


def quiet() -> Investigation:
    """A healthy fabric: no job slower, no onset, nothing supported."""
    base = inc_4127()
    hypotheses = tuple(_unsupported(hypothesis) for hypothesis in base.hypotheses)
    incident = base.incident.model_copy(update={"onset": None, "onset_uncertainty_s": None})
    return base.model_copy(
        update={
            "incident": incident,
            "summary": "No job of AI Fabric A slowed down in the window and no fault was found.",
            "root_causes": (),
            "unknown": UnknownCause(share=0.0),
            "loop": base.loop.model_copy(update={"verdict": "undecided"}),
            "domain": base.domain.model_copy(update={"verdict": "undecided"}),
            "impact": (),
            "hypotheses": hypotheses,
            "chain": (),
            "timeline": (),
            "next_checks": (),
        }
    )


def storm_on_an_idle_host() -> Investigation:
    """A fault that is present while no job is slower."""
    base = quiet()
    storm = base.hypotheses[3].model_copy(
        update={"status": "supported", "role": "co_occurring", "probability": 0.99, "evidence_against": ()}
    )
    return base.model_copy(update={"hypotheses": (*base.hypotheses[:3], storm, *base.hypotheses[4:])})


def nothing_assessable() -> Investigation:
    """A slower job, and nothing read that could say why."""
    base = inc_4127()
    missing = (MissingReading(sign="a.sign", place="device:leaf-07", read="`show everything` on leaf-07"),)
    hypotheses = tuple(
        _unsupported(hypothesis).model_copy(
            update={"status": "not_assessable", "missing": missing, "evidence_for": (), "evidence_against": ()}
        )
        for hypothesis in base.hypotheses
    )
    return base.model_copy(
        update={
            "root_causes": (),
            "unknown": UnknownCause(share=1.0),
            "hypotheses": hypotheses,
            "findings": base.findings[:1],
            "chain": base.chain[:1],
            "timeline": (),
            "telemetry": base.telemetry[:1],
        }
    )


def tied() -> Investigation:
    """Optic and connector at the leading place: nothing that was read separates them."""
    base = inc_4127()
    titles = ("Degraded optic on leaf-07 Et12", "Dirty connector on leaf-07 Et12")
    members = tuple(
        hypothesis.model_copy(
            update={
                "title": title,
                "status": "supported",
                "role": "root",
                "probability": p,
                "share": p,
                "tie_class": "T1",
            }
        )
        for hypothesis, title, p in zip(base.hypotheses, titles, (0.55, 0.4), strict=False)
    )
    tie = TieClass(
        id="T1",
        members=("H1", "H2"),
        probability=0.95,
        share=0.94,
        split_by=("Clean the connector and read Rx power again",),
    )
    return base.model_copy(update={"hypotheses": (*members, *base.hypotheses[2:]), "tie_classes": (tie,)})


def two_root_causes() -> Investigation:
    """The drain and a NIC storm at once."""
    base = inc_4127()
    first = base.hypotheses[0].model_copy(update={"share": 0.61})
    second = base.hypotheses[3].model_copy(
        update={
            "title": "NIC pause storm on gpu-worker-019 mlx5_3",
            "status": "supported",
            "role": "root",
            "probability": 0.96,
            "share": 0.35,
        }
    )
    return base.model_copy(
        update={"root_causes": ("H1", "H4"), "hypotheses": (first, *base.hypotheses[1:3], second, *base.hypotheses[4:])}
    )


def undecided() -> Investigation:
    """A slower job and only possibilities."""
    base = inc_4127()
    first = base.hypotheses[0].model_copy(
        update={"status": "possible", "role": None, "probability": 0.55, "share": 0.5}
    )
    return base.model_copy(update={"root_causes": (), "hypotheses": (first, *base.hypotheses[1:])})


def without_telemetry() -> Investigation:
    return inc_4127().model_copy(update={"telemetry": ()})


def empty() -> Investigation:
    """Nothing but the frame: a bundle of which nothing could be read."""
    fields = ("hypotheses", "findings", "chain", "timeline", "next_checks", "telemetry", "coverage", "read_issues")
    base = quiet()
    incident = base.incident.model_copy(update={"window": None, "fabric": None, "job": None})
    return base.model_copy(update={"incident": incident, **{field: () for field in fields}})


def many_hypotheses(count: int) -> Investigation:
    base = inc_4127()
    copies = tuple(base.hypotheses[1].model_copy(update={"id": f"H{number}"}) for number in range(2, count + 1))
    return base.model_copy(update={"hypotheses": (base.hypotheses[0], *copies), "next_checks": ()})


def all_variants() -> dict[str, Investigation]:
    return {
        "inc-4127": inc_4127(),
        "quiet": quiet(),
        "storm-on-an-idle-host": storm_on_an_idle_host(),
        "nothing-assessable": nothing_assessable(),
        "tied": tied(),
        "two-root-causes": two_root_causes(),
        "undecided": undecided(),
        "without-telemetry": without_telemetry(),
        "empty": empty(),
        "many-hypotheses": many_hypotheses(500),
        "ordinary-name": named("leaf-07"),
        "hostile-markup": named(HOSTILE_NAMES[0]),
        "hostile-reordering": named(HOSTILE_NAMES[5]),
        "hostile-escape": named(HOSTILE_NAMES[6]),
        "long-names": named(HOSTILE_NAMES[10]),
    }


def _unsupported(hypothesis: Hypothesis) -> Hypothesis:
    status = "ruled_out" if hypothesis.status == "supported" else hypothesis.status
    reason = "No place of the fabric shows its signs"
    return hypothesis.model_copy(
        update={
            "status": status,
            "role": None,
            "probability": 0.002,
            "explains": None,
            "share": 0.0,
            "reason": reason,
        }
    )
