"""The tidy form, ranks: when each rank of each step began and finished sending.

No standard; see `tidy_telemetry.py` for the form.

    job,step,host,send_start,send_done
    train-a,7,gpu-l0h00,2026-10-09T02:43:00.444Z,2026-10-09T02:43:05.911Z
    train-a,7,gpu-l1h00,2026-10-09T02:43:00.512Z,2026-10-09T02:43:06.072Z

| column     | fact                                                                                            |
|------------|-------------------------------------------------------------------------------------------------|
| job, host  | device and port of the series                                                                   |
| step       | a whole number; the step before it tells when this one began                                    |
| send_start | rank_send_start: seconds from the beginning of the step to it (after the rank's compute)        |
| send_done  | rank_send_done: seconds from the beginning of the step to it; blank: not finished, so no value  |

A step begins when the last rank of the step before it has finished sending, because a synchronous job waits for that.
So a rank that computes longer starts later, and when all do, all start later. Where the step before is not in the file
or not finished by all its ranks, nobody knows when the step began: it gives no sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from ..engine.facts import Fact, ReadIssue, Series
from .base import RawFile, Tally
from .tidy_columns import Codes, Floats, has_columns, read_csv


class TidyRanks:
    name = "tidy-ranks"
    reads = "tidy form: ranks.csv"
    emits = ("rank_send_done", "rank_send_start")
    absence = (("all", "a step whose predecessor is not in the file has no beginning: unknown"),)

    def matches(self, file: RawFile) -> bool:
        return has_columns(file, "job", "step", "host", "send_start", "send_done")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        columns = read_csv(file, tally)
        (job, jobs), (host, hosts) = columns.names("job"), columns.names("host")
        step, is_wrong_step = columns.numbers("step")
        starts, ends = columns.times("send_start", file), columns.times("send_done", file)
        done, written = columns.names("send_done")
        is_named = np.array([bool(name) for name in jobs])[job] & np.array([bool(name) for name in hosts])[host]
        is_wrong = is_named & (is_wrong_step | np.isnan(step) | np.isnan(starts))
        is_wrong |= is_named & np.array([bool(end) for end in written])[done] & ~(ends >= starts)
        for line in columns.lines[is_wrong].tolist():
            message = "step, send_start and send_done are no number and two times in order; the row is left out"
            tally.add("bad-rank", f"line {line}", message)
        is_kept = is_named & ~is_wrong
        # A row that is left out may have been the last to finish: the step behind it has no known beginning either.
        begins = _beginnings(job, step, np.where(is_kept, ends, np.nan))
        for metric, moments in (("rank_send_start", starts), ("rank_send_done", ends)):
            samples: dict[tuple[str, str], list[int]] = defaultdict(list)
            # Differences of epoch floats carry noise below a microsecond.
            relative = np.round(np.where(is_kept, moments - begins, np.nan), 6)
            for row in np.nonzero(~np.isnan(relative))[0].tolist():
                samples[(jobs[int(job[row])], hosts[int(host[row])])].append(row)
            for (job_name, host_name), rows in sorted(samples.items()):
                lines = columns.lines[rows].tolist()
                yield Series(
                    job_name,
                    host_name,
                    "",
                    metric,
                    tuple(moments[rows].tolist()),
                    tuple(relative[rows].tolist()),
                    file.provenance(self.name, f"lines {lines[0]}-{lines[-1]}"),
                    tuple(lines),
                )
        yield from tally.issues()


def _beginnings(job: Codes, step: Floats, ends: Floats) -> Floats:
    """When the step of each row began: NaN where the step before is not there or not finished by all its ranks."""
    last: dict[tuple[int, float], float] = {}
    for key, end in zip(zip(job.tolist(), step.tolist(), strict=True), ends.tolist(), strict=True):
        # NaN (not finished) wins over any time.
        last[key] = end if key not in last or end != end or end > last[key] else last[key]
    before = [last.get((one, number - 1), np.nan) for one, number in zip(job.tolist(), step.tolist(), strict=True)]
    return np.array(before, dtype=np.float64)


ADAPTER = TidyRanks()
