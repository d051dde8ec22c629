"""The errors Causeline raises: each says where, what was found, what was expected and what to do.

Bad telemetry is not an error but a `ReadIssue` (see `facts.py`): it is reported and the run goes on. Exit codes are
those of DESIGN.md section 7 and belong to the command line only.
"""

from __future__ import annotations


class CauselineError(Exception):
    """Base of every error a user can cause or mend.

    `remedy` is what to do about it.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class UsageError(CauselineError):
    """The question cannot be asked of this bundle (a job that is not in it, a window outside its data)."""

    exit_code = 2


class UnreadableInput(CauselineError):
    """The bundle itself cannot be opened (no such folder, not an archive, no file in it)."""

    exit_code = 3


class KnowledgeError(CauselineError):
    """The knowledge base is invalid.

    `problems` holds every problem found, as `file:line:column: path: what`.
    """

    exit_code = 4

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems), "Run `causeline kb check` after the correction.")
        self.problems = problems


class InferenceError(CauselineError):
    """The network cannot be solved as asked: evidence impossible under the model, or too many open bits."""


class TooManyOpenBits(InferenceError):
    """More quantities couple the places of the network than can be summed at once.

    `signs`: the nodes of shared signs among them.
    """

    def __init__(self, message: str, remedy: str = "", signs: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy)
        self.signs = signs
