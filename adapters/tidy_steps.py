"""The tidy form, steps: when each step of each job began and ended.

No standard; see `tidy_telemetry.py` for the form.

    job,step,start,end
    train-a,7,2026-10-09T02:42:57.849Z,2026-10-09T02:43:06.072Z
    train-a,8,2026-10-09T02:43:06.072Z,

| column     | fact                                                                                        |
|------------|---------------------------------------------------------------------------------------------|
| job        | device of the series                                                                        |
| start, end | step_seconds = end - start, stamped at the end; end blank: step_open, stamped at the start   |
| step       | not read: the times order the steps                                                         |

A step without an end took at least as long as it was watched. That is no duration: only its begin is told. Of a job's
steps only the last can be under way; an earlier one without an end is a gap in the log.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..engine.facts import Fact, ReadIssue, Series
from .base import RawFile, Tally
from .tidy_columns import has_columns, read_csv


class TidySteps:
    name = "tidy-steps"
    reads = "tidy form: steps.csv"
    emits = ("step_open", "step_seconds")
    absence = (
        ("step_seconds", "a step without an end was not finished when the file was written: unknown"),
        ("step_open", "every step that began has its end in the file"),
    )

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
            of_job = is_named & ~is_wrong & (job == code)
            rows = np.nonzero(of_job & is_written)[0]
            if len(rows):
                yield self._series(file, name, "step_seconds", ends[rows], seconds[rows], columns.lines[rows])
            begun = np.nonzero(of_job)[0]
            latest = begun[np.argmax(starts[begun])] if len(begun) else None
            if latest is not None and not is_written[latest]:
                rows = np.array([latest])
                yield self._series(file, name, "step_open", starts[rows], np.ones(1), columns.lines[rows])
        yield from tally.issues()

    def _series(
        self,
        file: RawFile,
        job: str,
        metric: str,
        times: npt.NDArray[np.float64],
        values: npt.NDArray[np.float64],
        lines: npt.NDArray[np.int64],
    ) -> Series:
        written = lines.tolist()
        record = f"lines {written[0]}-{written[-1]}" if len(written) > 1 else f"line {written[0]}"
        return Series(
            job,
            "",
            "",
            metric,
            tuple(times.tolist()),
            tuple(values.tolist()),
            file.provenance(self.name, record),
            tuple(written),
        )


ADAPTER = TidySteps()
