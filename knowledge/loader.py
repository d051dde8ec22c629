"""Reads the rule files of one or more directories into a `Library`: every rule together with the file it stands in.

Layout of a directory, the shipped one and a site's overlays alike: `causes/<family>/<name>.yaml` (id `family.name`),
`signs/<family>/<id>.yaml`, `loops/<id>.yaml` (mechanisms), `tempers.yaml`. Whether the rules fit each other is judged
in `soundness.py` and `lint.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ..engine.rules import Cause, KnowledgeBase, Mechanism, Sign
from .tempers import Tempers, tempered
from .yaml_source import UnreadableYaml, YamlSource

SHIPPED = Path(__file__).parent
CASES_SUFFIX = ".cases.yaml"

_OTHER_FOLDERS = ("platforms", "topologies", "schema")

TEMPERS = "tempers"

RuleModel = TypeVar("RuleModel", Cause, Mechanism, Sign, Tempers)
AnyRule = Cause | Mechanism | Sign


@dataclass(frozen=True, slots=True)
class RuleFile(Generic[RuleModel]):
    """A rule and its file. `relative` is the path below the knowledge directory, `file` the path on disk."""

    rule: RuleModel
    relative: str
    file: Path
    source: YamlSource

    def problem(self, at: Sequence[str | int], what: str) -> str:
        return self.source.problem(at, what)


@dataclass(frozen=True, slots=True)
class Library:
    """Everything that was read, by id and in order of the ids.

    `tempers`: None without such a file, which believes every sign as graded. `problems`: what could not be read.
    `broken`: ids whose file exists but holds problems, so that references to them are not reported a second time.
    """

    causes: Mapping[str, RuleFile[Cause]]
    mechanisms: Mapping[str, RuleFile[Mechanism]]
    signs: Mapping[str, RuleFile[Sign]]
    tempers: RuleFile[Tempers] | None
    overrides: tuple[str, ...]
    problems: tuple[str, ...]
    broken: frozenset[str]

    def drivers(self) -> tuple[RuleFile[Cause] | RuleFile[Mechanism], ...]:
        """Causes and mechanisms: what drives mechanisms and turns signs on."""
        return (*self.causes.values(), *self.mechanisms.values())

    def files(self) -> tuple[RuleFile[Cause] | RuleFile[Mechanism] | RuleFile[Sign], ...]:
        return (*self.drivers(), *self.signs.values())

    @property
    def sign_families(self) -> dict[str, str]:
        """The folder of each sign."""
        return {key: Path(file.relative).parent.name for key, file in self.signs.items()}

    def knowledge_base(self, tempers: Mapping[str, float] | None = None) -> KnowledgeBase:
        """The rules alone, in order of their ids, tempered by the file's exponents or by `tempers` (family to
        exponent) instead."""
        if tempers is None:
            tempers = {name: one.t for name, one in self.tempers.rule.families.items()} if self.tempers else {}
        rules = KnowledgeBase(
            causes={key: file.rule for key, file in self.causes.items()},
            mechanisms={key: file.rule for key, file in self.mechanisms.items()},
            signs={key: file.rule for key, file in self.signs.items()},
            digest=self.digest(),
            overrides=self.overrides,
        )
        return tempered(rules, self.sign_families, tempers)

    def digest(self) -> str:
        """sha256 over path and bytes of every rule file in effect, in order of the paths."""
        total = hashlib.sha256()
        used = [(file.relative, file.source.raw) for file in self.files()]
        used += [(self.tempers.relative, self.tempers.source.raw)] if self.tempers else []
        for path, raw in sorted(used):
            # lengths first: no two sets of files can give the same stream
            total.update(f"{len(path)} {len(raw)} {path}".encode())
            total.update(raw)
        return total.hexdigest()


def read_library(*overlays: Path, shipped: Path = SHIPPED) -> Library:
    """Reads the shipped rules, then each overlay over them. Never raises: what cannot be read is in `problems`."""
    reader = _Reader()
    reader.read(shipped, "knowledge")
    reader.in_overlay = True
    for overlay in overlays:
        if overlay.is_dir():
            reader.read(overlay, overlay.as_posix())
        else:
            reader.problems.append(
                f"{overlay}: no such directory; expected a knowledge overlay with causes/, signs/ or loops/"
            )
    return Library(
        dict(sorted(reader.causes.items())),
        dict(sorted(reader.mechanisms.items())),
        dict(sorted(reader.signs.items())),
        reader.tempers.get(TEMPERS),
        tuple(sorted(reader.overrides)),
        tuple(reader.problems),
        frozenset(reader.broken),
    )


def rule_paths(directory: Path) -> Iterator[Path]:
    """All rule files below `directory`, in order; case files and the other folders' files are left out."""
    for path in sorted(directory.rglob("*.y*ml")):
        folder = path.relative_to(directory).parts[0]
        if path.is_file() and folder not in _OTHER_FOLDERS and not path.name.endswith(CASES_SUFFIX):
            yield path


def expected_id(relative: Path) -> str | None:
    """The id that a rule file's path stands for; None where no rule belongs.

    >>> [expected_id(Path(path)) for path in ("causes/path/missing_link.yaml", "signs/queue/queue_high.yaml", "x.yaml")]
    ['path.missing_link', 'queue_high', None]
    """
    match relative.with_suffix("").parts:
        case ("causes", family, name) if relative.suffix == ".yaml":
            return f"{family}.{name}"
        case ("signs", _, name) | ("loops", name) if relative.suffix == ".yaml":
            return name
        case (name,) if relative.name == f"{TEMPERS}.yaml":
            return name
    return None


@dataclass
class _Reader:
    causes: dict[str, RuleFile[Cause]] = field(default_factory=dict)
    mechanisms: dict[str, RuleFile[Mechanism]] = field(default_factory=dict)
    signs: dict[str, RuleFile[Sign]] = field(default_factory=dict)
    tempers: dict[str, RuleFile[Tempers]] = field(default_factory=dict)
    overrides: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    in_overlay: bool = False

    def read(self, directory: Path, shown: str) -> None:
        here: dict[str, str] = {}
        for path in rule_paths(directory):
            relative = path.relative_to(directory)
            name = expected_id(relative)
            message_path = f"{shown}/{relative.as_posix()}"
            if name is None:
                self.problems.append(
                    f"{message_path}:1:1: no rule file belongs here; expected causes/<family>/<name>.yaml, "
                    "signs/<family>/<id>.yaml, loops/<id>.yaml or tempers.yaml"
                )
            elif name in here:
                self.problems.append(f"{message_path}:1:1: id {name!r} is already taken by {here[name]}")
            else:
                here[name] = message_path
                self._read_file(path, relative, name, message_path)

    def _read_file(self, path: Path, relative: Path, name: str, message_path: str) -> None:
        try:
            source = YamlSource.parse(message_path, path.read_bytes())
        except UnreadableYaml as error:
            self._reject(name, error.problems)
            return
        match relative.parts[0]:
            case "causes":
                self._add(self.causes, source.validate(Cause), source, path, relative, name)
            case "loops":
                self._add(self.mechanisms, source.validate(Mechanism), source, path, relative, name)
            case "tempers.yaml":
                self._add(self.tempers, source.validate(Tempers), source, path, relative, name)
            case _:
                self._add(self.signs, source.validate(Sign), source, path, relative, name)

    def _add(
        self,
        known: dict[str, RuleFile[RuleModel]],
        validated: tuple[RuleModel | None, tuple[str, ...]],
        source: YamlSource,
        path: Path,
        relative: Path,
        name: str,
    ) -> None:
        rule, problems = validated
        if rule is None:
            self._reject(name, problems)
        elif not isinstance(rule, Tempers) and rule.id != name:
            self._reject(name, (source.problem(("id",), f"the file's path stands for id {name!r} (got {rule.id!r})"),))
        else:
            if self.in_overlay:
                self.overrides.append(f"{'replaced' if name in known else 'added'} {relative.as_posix()}")
            known[name] = RuleFile(rule, relative.as_posix(), path, source)

    def _reject(self, name: str, problems: tuple[str, ...]) -> None:
        self.broken.add(name)
        self.problems.extend(problems)
