"""The tidy form, steps: when each step of each job began and ended.

No standard; see `tidy_telemetry.py` for the form.

    job,step,start,end
    train-a,7,2026-10-09T02:42:57.849Z,2026-10-09T02:43:06.072Z
    train-a,8,2026-10-09T02:43:06.072Z,

| column     | fact                                                                                        |
|------------|---------------------------------------------------------------------------------------------|
| job        | device of the series                                                                        |
| start, end | step_seconds = end - start, stamped at the end; end blank: not finished, so no value yet    |
| step       | not read: the times order the steps                                                         |

A step without an end took at least as long as it was watched. That is no duration: the step gives no sample.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..engine.facts import Fact, ReadIssue, Series
from .base import RawFile, Tally
from .tidy_columns import has_columns, read_csv


class TidySteps:
    name = "tidy-steps"
    reads = "tidy form: steps.csv"
    emits = ("step_seconds",)
    absence = (("step_seconds", "a step without an end was not finished when the file was written: unknown"),)

    def matches(self, file: RawFile) -> bool:
        return has_columns(file, "job", "step", "start", "end")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        columns = read_csv(file, tally)
        job, jobs = columns.names("job")
        starts, ends = columns.times("start", file), columns.times("end", file)
        ended, written_ends = columns.names("end")
        is_written = np.array([bool(end) for end in written_ends])[ended]
        is_named = np.array([bool(name) for name in jobs])[job]
        seconds = np.round(ends - starts, 6)  # differences of epoch floats carry noise below a microsecond
        is_wrong = is_named & (np.isnan(starts) | (is_written & ~(seconds > 0)))
        for line in columns.lines[is_wrong].tolist():
            message = "start and end are no two times in order; the step is left out (a blank end: not finished)"
            tally.add("bad-step", f"line {line}", message)
        for code, name in enumerate(jobs):
            rows = np.nonzero(is_named & ~is_wrong & is_written & (job == code))[0]
            if len(rows) == 0:
                continue
            lines = columns.lines[rows].tolist()
            yield Series(
                name,
                "",
                "",
                "step_seconds",
                tuple(ends[rows].tolist()),
                tuple(seconds[rows].tolist()),
                file.provenance(self.name, f"lines {lines[0]}-{lines[-1]}"),
                tuple(lines),
            )
        yield from tally.issues()


ADAPTER = TidySteps()
