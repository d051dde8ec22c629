"""Slurm `scontrol show job [-d]`: which hosts a job runs on, and since when.

Documentation: scontrol(1), "show job"; host lists by python-hostlist.

    JobId=48213 JobName=run-0412
       UserId=train(2001) GroupId=train(2001) Account=foundation QOS=normal
       JobState=RUNNING Reason=None
       StartTime=2026-11-16T08:02:11 EndTime=2026-11-23T08:02:11
       NodeList=gpu-worker-[001-064]

| field                     | fact                                                                             |
|---------------------------|----------------------------------------------------------------------------------|
| JobName, JobId            | JobPlacement.job, job_id                                                         |
| NodeList                  | hosts, expanded; a pending job has none and gives no fact                        |
| StartTime, EndTime        | start, end (end None while the job runs: EndTime is then the time limit's)       |
| Account                   | tenant                                                                           |

Times are local and name no zone: the bundle's is taken. Values may hold `=` and blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import hostlist

from ..engine.facts import Fact, JobPlacement, ReadIssue
from .base import RawFile, Tally

_FIELD = re.compile(r"(?:^|\s)(JobId|JobName|Account|JobState|NodeList|StartTime|EndTime)=(\S*)")
_NONE = {"", "(null)", "None", "Unknown", "N/A"}
_RUNNING = {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED"}


class SlurmJob:
    name = "slurm-job"
    reads = "Slurm 20.x to 25.x `scontrol show job`"
    emits = ("JobPlacement",)
    absence = (
        (
            "JobPlacement",
            "scontrol forgets jobs some minutes after their end (MinJobAge): a job that is not listed may have run",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        return file.head.startswith("JobId=")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        starts = [number for number, line in enumerate(file.lines) if line.startswith("JobId=")]
        for first, last in zip(starts, [*starts[1:], len(file.lines)], strict=True):
            while last > first + 1 and not file.lines[last - 1].strip():
                last -= 1
            record = f"lines {first + 1}-{last}"
            fields: dict[str, str] = {}
            for line in file.lines[first:last]:
                for key, value in _FIELD.findall(line):
                    fields.setdefault(key, value)
            nodes = fields.get("NodeList")
            if nodes is None:
                tally.add(
                    "truncated-job",
                    record,
                    f"job {fields.get('JobId')} has no NodeList: the output is cut; collect it again",
                )
                continue
            if nodes in _NONE:
                continue
            try:
                hosts = tuple(hostlist.expand_hostlist(nodes, sort=False))
            except hostlist.BadHostlist as error:
                tally.add(
                    "bad-host-list",
                    record,
                    f"NodeList {nodes[:80]!r} is not a host list ({error}); the job is left out",
                )
                continue
            end = None if fields.get("JobState") in _RUNNING else self._time(file, fields, "EndTime")
            yield JobPlacement(
                job=fields.get("JobName") or fields["JobId"],
                job_id=fields["JobId"],
                hosts=hosts,
                start=self._time(file, fields, "StartTime"),
                end=end,
                provenance=file.provenance(self.name, record),
                tenant=None if fields.get("Account", "") in _NONE else fields["Account"],
            )
        yield from tally.issues()

    def _time(self, file: RawFile, fields: dict[str, str], key: str) -> float | None:
        written = fields.get(key, "")
        return None if written in _NONE else file.clock.device_time(written)


ADAPTER = SlurmJob()
