"""The tidy form, jobs: where each job runs and what traffic it makes.

No standard; see `tidy_telemetry.py` for the form.

    [{"job": "train-a", "pattern": "ring_allreduce", "bytes_per_host_per_step": 60000000000, "qps_per_pair": 4,
      "hosts": ["gpu-l0h00", "gpu-l1h00"], "targets": [], "tenant": "foundation", "start": "2026-10-08T21:00:00Z"}]

| key                     | fact                                                                                     |
|-------------------------|------------------------------------------------------------------------------------------|
| job, id                 | JobPlacement.job, job_id (the job's name where there is no id)                           |
| hosts, targets          | hosts; targets: hosts that only receive the job's bytes (a checkpoint store)             |
| pattern                 | traffic                                                                                  |
| bytes_per_host_per_step | bytes_per_step                                                                           |
| qps_per_pair            | qps_per_pair                                                                             |
| start, end              | RFC 3339; not there: not known                                                           |
| tenant, model           | tenant, model                                                                            |

Other keys are the writer's own and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, JobPlacement, ReadIssue
from .base import BadFile, JsonValue, RawFile, Tally, mapping, number, pointer

_HEAD = re.compile(r'\[\s*\{[^{}]*"(?:job"\s*:[^{}]*"hosts|hosts"\s*:[^{}]*"job)"\s*:')


class TidyJobs:
    name = "tidy-jobs"
    reads = "tidy form: jobs.json"
    emits = ("JobPlacement",)
    absence = (("JobPlacement", "a job that is not listed may run all the same: other tenants are rarely known"),)

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        rows = file.json
        if not isinstance(rows, list):
            raise BadFile("not-a-list", f"it holds {type(rows).__name__}, expected a list of jobs")
        for index, row in enumerate(rows):
            fields, record = mapping(row), pointer(index)
            job, hosts = _text(fields, "job"), _names(fields.get("hosts"))
            if job is None or not hosts:
                lacking = "job" if job is None else "hosts"
                tally.add(
                    "incomplete-job", record, f"{lacking} is missing or empty; expected a name and a list of hosts"
                )
                continue
            qps = number(fields.get("qps_per_pair"))
            yield JobPlacement(
                job=job,
                job_id=_text(fields, "id") or job,
                hosts=hosts,
                start=self._time(file, fields, "start", record, tally),
                end=self._time(file, fields, "end", record, tally),
                provenance=file.provenance(self.name, record),
                tenant=_text(fields, "tenant"),
                model=_text(fields, "model"),
                targets=_names(fields.get("targets")),
                traffic=_text(fields, "pattern"),
                bytes_per_step=number(fields.get("bytes_per_host_per_step")),
                qps_per_pair=None if qps is None else int(qps),
            )
        yield from tally.issues()

    def _time(self, file: RawFile, fields: dict[str, JsonValue], key: str, record: str, tally: Tally) -> float | None:
        written = fields.get(key)
        if written is None:
            return None
        moment = file.clock.device_time(written) if isinstance(written, str) else None
        if moment is None:
            tally.add("bad-time", record, f"{key} is {written!r}, expected an RFC 3339 time; taken as not known")
        return moment


def _text(fields: dict[str, JsonValue], key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) and value else None


def _names(value: JsonValue) -> tuple[str, ...]:
    return tuple(name for name in value if isinstance(name, str) and name) if isinstance(value, list) else ()


ADAPTER = TidyJobs()
