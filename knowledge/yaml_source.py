"""A YAML file and where each of its parts stands, so that every problem can be told as `file:line:column: path: what`.

Only reading is done here: what the parts mean is the models' business.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)
Step = str | int

_SHOWN = 60  # longest wrong value repeated in a message, in characters: judgement


class UnreadableYaml(Exception):
    """The text is not one YAML document of plain values. `problems` says where and why."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class YamlSource:
    """One YAML document. `path` is shown in messages; `raw` are the file's bytes, `content` its plain values."""

    path: str
    raw: bytes
    content: object
    root: yaml.Node

    @classmethod
    def parse(cls, path: str, raw: bytes) -> YamlSource:
        """Reads one document. Raises UnreadableYaml for broken syntax, repeated keys, and anything but plain values."""
        try:
            loader = yaml.SafeLoader(raw.decode("utf-8"))
            root = loader.get_single_node()
            if root is None:
                raise UnreadableYaml((f"{path}:1:1: the file is empty, expected one YAML mapping",))
            if repeated := tuple(_repeated_keys(path, root)):
                raise UnreadableYaml(repeated)
            return cls(path, raw, loader.construct_document(root), root)
        except UnicodeDecodeError as error:
            raise UnreadableYaml((f"{path}:1:1: byte {error.start} is not UTF-8 text",)) from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            said = ", ".join(part for part in (error.context, error.problem) if part)
            raise UnreadableYaml((f"{path}:{line}:{column}: not YAML: {said}",)) from error
        except (yaml.YAMLError, ValueError) as error:
            # a control character, or a date that does not exist
            raise UnreadableYaml((f"{path}:1:1: not YAML: {' '.join(str(error).split())}",)) from error

    def line_of(self, at: Sequence[Step]) -> int:
        """1-based line of the deepest existing part on the path `at`."""
        return self._mark(at).line + 1

    def problem(self, at: Sequence[Step], what: str) -> str:
        """`file:line:column: path: what`, the place being the deepest existing part on the path `at`."""
        mark = self._mark(at)
        path = ".".join(map(str, at))
        return f"{self.path}:{mark.line + 1}:{mark.column + 1}: {path + ': ' if path else ''}{what}"

    def validate(self, model: type[Model]) -> tuple[Model | None, tuple[str, ...]]:
        """The document as `model`, or None and every problem with it."""
        try:
            return model.model_validate(self.content), ()
        except ValidationError as error:
            return None, tuple(self._told(details) for details in error.errors())

    def _told(self, details: ErrorDetails) -> str:
        # in parentheses: the form of a value that has several, no key of the file
        at = tuple(step for step in details["loc"] if not str(step).startswith("("))
        found = details["input"]
        if details["type"] == "missing":
            return self.problem(at, "is missing")
        if details["type"] == "extra_forbidden":
            return self.problem(at, "is not a known key here")
        message = details["msg"].removeprefix("Value error, ")
        if isinstance(found, dict | list):
            return self.problem(at, message)
        shown = repr(found)
        return self.problem(at, f"{message} (got {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'})")

    def _mark(self, at: Sequence[Step]) -> yaml.Mark:
        node, mark = self.root, self.root.start_mark
        for step in at:
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == str(step)), None)
                if found is None:
                    return mark
                mark, node = found[0].start_mark, found[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                mark = node.start_mark
            else:
                return mark
        return mark


def _repeated_keys(path: str, node: yaml.Node, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """YAML parsers keep the last of two equal keys and say nothing: half of a rule would vanish."""
    if id(node) in seen:
        return
    seen |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        first: dict[Hashable, yaml.Node] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in first:
                    mark, before = key.start_mark, first[key.value].start_mark
                    where = f"{path}:{mark.line + 1}:{mark.column + 1}"
                    yield f"{where}: key {key.value!r} is already given in line {before.line + 1}"
                first.setdefault(key.value, key)
            yield from _repeated_keys(path, value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(path, item, seen)
