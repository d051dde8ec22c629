"""Columns of the tidy form's CSV files: read whole by pyarrow, with the line of each row; nothing is understood here.

A row with too many or too few columns costs only itself, and the lines of the rows behind it stay right.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from .base import BadFile, RawFile, Tally

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class Columns:
    """Columns by name, all of the same length; `lines` is the 1-based line of each row, the header being line 1."""

    table: pa.Table
    lines: Codes

    def names(self, column: str) -> tuple[Codes, list[str]]:
        """A column of names as codes into its distinct names; "" where the cell is blank or the column is not there."""
        if column not in self.table.column_names:
            return np.zeros(len(self.table), dtype=np.int64), [""]
        cells = self.table[column]
        if pa.types.is_temporal(cells.type):
            # Each distinct time is written out once: a poll has as many rows as there are counters.
            encoded = cells.combine_chunks().dictionary_encode()
            names = [*encoded.dictionary.cast(pa.string()).to_pylist(), ""]
            return np.asarray(encoded.indices.fill_null(len(names) - 1), dtype=np.int64), names
        found = cells.cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
        return np.asarray(found.indices, dtype=np.int64), [name.strip() for name in found.dictionary.to_pylist()]

    def times(self, column: str, file: RawFile) -> Floats:
        """A column of times in seconds since the epoch; NaN where the cell is blank or not a time."""
        codes, names = self.names(column)
        moments = [file.clock.device_time(name) if name else None for name in names]
        return np.array([np.nan if at is None else at for at in moments], dtype=np.float64)[codes]

    def numbers(self, column: str) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """A column of numbers, NaN where there is none, and which cells hold something that is no finite number."""
        cells = self.table[column].combine_chunks()
        if not (pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type)):
            text = cells.cast(pa.string()).fill_null("")
            is_number = pc.match_substring_regex(text, _NUMBER)
            is_blank = np.asarray(pc.equal(pc.utf8_trim_whitespace(text), ""))
            trimmed = pc.if_else(is_number, pc.utf8_trim_whitespace(text), pa.scalar(None, pa.string()))
            found = np.asarray(trimmed.cast(pa.float64()).fill_null(np.nan), dtype=np.float64)
        else:
            is_blank = np.asarray(cells.is_null())
            found = np.asarray(cells.cast(pa.float64(), safe=False).fill_null(np.nan), dtype=np.float64)
        is_wrong = ~np.isfinite(found) & ~is_blank
        return np.where(is_wrong, np.nan, found), is_wrong


def has_columns(file: RawFile, *columns: str) -> bool:
    """Whether the file begins with a CSV header that has all of these columns."""
    header = {column.strip().strip('"') for column in file.head.partition("\n")[0].split(",")}
    return header.issuperset(columns)


def read_csv(file: RawFile, tally: Tally) -> Columns:
    """All columns of a CSV file as text. Rows of another width go to the tally. Raises BadFile where no row is left."""
    skipped: list[int] = []

    def leave_out(row: Any) -> str:
        skipped.append(row.number)
        if row.text.strip():
            message = f"{row.actual_columns} columns, the header has {row.expected_columns}; the row is left out"
            tally.add("wrong-columns", f"line {row.number}", message)
        return "skip"

    header = [name.strip().strip('"') for name in file.text.partition("\n")[0].split(",")]
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(file.text.encode()),
            pyarrow.csv.ReadOptions(use_threads=False, column_names=header, skip_rows=1),
            pyarrow.csv.ParseOptions(invalid_row_handler=leave_out, ignore_empty_lines=False),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        message = f"it is not read as CSV: {str(error).splitlines()[0]}; write it again, one row a line"
        raise BadFile("malformed-csv", message) from error
    if len(table) == 0:
        message = f"no row has the {len(header)} columns of the header; is the file cut? write it again"
        raise BadFile("no-rows", message)
    last = len(table) + len(skipped) + 1
    is_row = np.ones(last + 1, dtype=bool)
    is_row[[0, 1, *skipped]] = False
    return Columns(table, np.nonzero(is_row)[0])
