"""Saved investigations: one SQLite file, one row an investigation, so that a past incident can be found and shown
again.

Rows hold what a list shows; the whole result is kept as the JSON of its contract and rendered from there. No domain
logic lives here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DatabaseError
from sqlmodel import Field, Session, SQLModel, col, create_engine, select

from .errors import UnreadableInput, UsageError
from .results import Investigation


class SavedInvestigation(SQLModel, table=True):
    """One investigation.

    `onset` is None without one, `cause` and `place` without a root cause; `result` is its JSON.
    """

    number: int | None = Field(default=None, primary_key=True)
    incident: str = Field(index=True)
    job: str | None = None
    fabric: str | None = None
    onset: str | None = None
    summary: str
    cause: str | None = Field(default=None, index=True)
    place: str | None = None
    knowledge_digest: str
    result: str


class Store:
    """Investigations saved in the SQLite file at `path`, which is made when the first one is saved."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, investigation: Investigation) -> int:
        """Adds an investigation and returns its number.

        The same incident may be saved again: each analysis is a row.
        """
        leading = next((h for h in investigation.hypotheses if h.id in investigation.root_causes), None)
        row = SavedInvestigation(
            incident=investigation.incident.id,
            job=investigation.incident.job,
            fabric=investigation.incident.fabric,
            onset=investigation.incident.onset,
            summary=investigation.summary,
            cause=None if leading is None else leading.cause,
            place=None if leading is None else leading.scope,
            knowledge_digest=investigation.versions.knowledge_digest,
            result=investigation.to_json(),
        )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._session() as session:
            session.add(row)
            session.commit()
            session.refresh(row)
            assert row.number is not None
            return row.number

    def all(self) -> tuple[SavedInvestigation, ...]:
        """Every saved investigation, oldest first.

        Raises UnreadableInput when there is no such file or it is no store.
        """
        self._require()
        with self._session() as session:
            return tuple(session.exec(select(SavedInvestigation).order_by(col(SavedInvestigation.number))))

    def get(self, number: int) -> Investigation:
        """The investigation of that number.

        Raises UsageError when there is none.
        """
        self._require()
        with self._session() as session:
            row = session.get(SavedInvestigation, number)
        if row is None:
            raise UsageError(f"There is no investigation {number} in {self._path}.", "See `causeline incidents list`.")
        return Investigation.from_json(row.result)

    def _require(self) -> None:
        if not self._path.is_file():
            raise UnreadableInput(
                f"{self._path} is no store: there is no such file.", "Save one with `investigate --save`."
            )

    @contextmanager
    def _session(self) -> Iterator[Session]:
        engine = create_engine(f"sqlite:///{self._path}")
        try:
            SQLModel.metadata.create_all(engine)
            with Session(engine) as session:
                yield session
        except DatabaseError as error:
            message = f"{self._path} is no store: {error.orig or error}."
            raise UnreadableInput(message, "Choose another file for --save or --store.") from error
        finally:
            engine.dispose()
