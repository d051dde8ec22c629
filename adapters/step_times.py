"""Step log of a training job: one JSON object a line, a line a step.

No standard names the keys; these are the ones in common use (PyTorch Lightning, Megatron-LM JSON logs, in-house
trainers).

    {"ts": "2026-11-17T20:15:02.310Z", "job": "run-0412", "step": 81233, "step_time_s": 2.31, "tokens": 4194304}

| key                                                                     | metric       | unit |
|-------------------------------------------------------------------------|--------------|------|
| step_time_s, step_time, step_seconds, elapsed, elapsed_s, *_ms (/1000)   | step_seconds | s, G |
| tokens, step_tokens, tokens_per_step                                    | step_tokens  | 1, G |
| ts, time, timestamp, _timestamp (RFC 3339, or seconds since the epoch)   | the end of the step |  |
| job, job_name, run (else the path: `steps_{job}.jsonl`)                  | device of the series |  |

A line with a step but no duration (evaluation, checkpoint) is a poll without a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from ..engine.facts import Fact, ReadIssue, Series
from .base import JsonValue, RawFile, Tally, number

_STEP = ("step", "iteration", "global_step", "_step")
_TIME = ("ts", "time", "timestamp", "_timestamp")
_JOB = ("job", "job_name", "run")
_TOKENS = ("tokens", "step_tokens", "tokens_per_step")
_SECONDS = ("step_time_s", "step_time", "step_seconds", "elapsed_s", "elapsed")
_MILLISECONDS = ("step_time_ms", "elapsed_ms")
_HEAD = re.compile(r'\{[^{}\n]*"(?:step|iteration|global_step|_step)"\s*:')


@dataclass
class _Samples:
    times: list[float] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


class StepTimes:
    name = "step-times"
    reads = "step log of a training job as JSON lines"
    emits = ("step_seconds", "step_tokens")
    absence = (
        ("step_seconds", "a step that is not logged is unknown; loggers print every n-th step"),
        ("step_tokens", "not every trainer logs it"),
    )

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        samples: dict[tuple[str, str], _Samples] = {}
        for number_, line in enumerate(file.lines, start=1):
            if not line.strip():
                continue
            record = f"line {number_}"
            try:
                fields = orjson.loads(line)
            except orjson.JSONDecodeError:
                tally.add("malformed-line", record, f"{line[:60]!r} is not one JSON object; left out")
                continue
            if not isinstance(fields, dict) or _first(fields, _STEP) is None:
                tally.add("not-a-step", record, f"no {', '.join(_STEP)} in it; left out")
                continue
            at, job = _time(file, _first(fields, _TIME)), _first(fields, _JOB) or file.hints.job
            if at is None or not job:
                lacking = "time" if at is None else "job name"
                tally.add(
                    "incomplete-step",
                    record,
                    f"the step has no {lacking} (expected {', '.join(_TIME if at is None else _JOB)}); left out",
                )
                continue
            seconds = _seconds(fields)
            if seconds is None:
                tally.add(
                    "no-duration", record, "the step has no duration that is a number; kept as a poll without a value"
                )
            for metric, value in (("step_seconds", seconds), ("step_tokens", number(_first(fields, _TOKENS)))):
                if metric == "step_seconds" or value is not None:
                    series = samples.setdefault((str(job), metric), _Samples())
                    series.times.append(at)
                    series.values.append(value)
                    series.lines.append(number_)
        for (job, metric), series in samples.items():
            provenance = file.provenance(self.name, f"lines {series.lines[0]}-{series.lines[-1]}")
            yield Series(
                job, "", "", metric, tuple(series.times), tuple(series.values), provenance, tuple(series.lines)
            )
        yield from tally.issues()


def _first(fields: dict[str, JsonValue], keys: tuple[str, ...]) -> JsonValue:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _time(file: RawFile, written: JsonValue) -> float | None:
    if isinstance(written, str):
        return file.clock.device_time(written)
    seconds = number(written)
    return None if seconds is None else file.clock.device_epoch(seconds)


def _seconds(fields: dict[str, JsonValue]) -> float | None:
    milliseconds = number(_first(fields, _MILLISECONDS))
    return number(_first(fields, _SECONDS)) if milliseconds is None else milliseconds / 1000


ADAPTER = StepTimes()
