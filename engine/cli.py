"""The command line.

Imports every package, lazily; nobody imports it. Results go to stdout, progress and messages to stderr.
"""

from __future__ import annotations

import gc
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .cli_drill import drill
from .console import KNOWLEDGE, ErrorsAsMessages, Progress, chosen_form, format_option, progress_on_stderr, write_text
from .errors import CauselineError, UnreadableInput, UsageError

if TYPE_CHECKING:
    from ..adapters import Hints
    from .investigate import Case
    from .results import Investigation
    from .rules import KnowledgeBase

SUPPORTED_EXIT = 10
"""Exit code of `--exit-code` when a root cause is supported (DESIGN.md section 7)."""


@click.group(cls=ErrorsAsMessages, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-v", "--verbose", is_flag=True, help="Log what is done, with tracebacks, on stderr.")
@click.version_option(package_name="causeline")
def main(verbose: bool) -> None:
    """Root-cause engine for the networks behind AI: raw telemetry in, a verdict with evidence out."""
    logging.basicConfig(level=logging.DEBUG if verbose else logging.ERROR, stream=sys.stderr)


BUNDLE = click.argument("bundle", type=click.Path(path_type=Path))


@main.command()
@BUNDLE
@click.option("--job", help="The job that got slow. Default: the bundle's, else the one that slowed most.")
@click.option("--at", help="When it began, as far as you know. The engine finds the onset from step times itself.")
@click.option("--window", help="START/END in RFC 3339. Default: the bundle's, else the span of its data.")
@click.option("--check", is_flag=True, help="Cross-check the reported part of the network with pgmpy.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Add the result to this store (SQLite).")
@click.option("--exit-code", is_flag=True, help=f"Exit with {SUPPORTED_EXIT} when a root cause is supported.")
@KNOWLEDGE
@format_option
def investigate(
    bundle: Path,
    job: str | None,
    at: str | None,
    window: str | None,
    check: bool,
    save: Path | None,
    exit_code: bool,
    overlays: tuple[Path, ...],
    form: str | None,
    output: Path | None,
) -> None:
    """What caused the incident in BUNDLE (a folder, .tar, .tar.gz, .tar.zst or .zip), and what did not."""
    with progress_on_stderr() as progress:
        case = _examine(bundle, overlays, progress, job, at, window)
        if check:
            progress("cross-checking with pgmpy")
            _cross_check(case)
        text = _rendered(case.investigation, chosen_form(form, output))
    write_text(text, output)
    if save is not None:
        from .store import Store

        click.echo(f"causeline: saved as investigation {Store(save).save(case.investigation)} in {save}", err=True)
    if exit_code and case.investigation.root_causes:
        click.get_current_context().exit(SUPPORTED_EXIT)


def _examine(
    bundle: Path, overlays: tuple[Path, ...], progress: Progress, job: str | None, at: str | None, window: str | None
) -> Case:
    from ..adapters import read
    from ..knowledge import load
    from .asked import asked_incident
    from .investigate import examine

    # One batch, then the process ends: the cyclic collector only walks a million live facts again and again.
    gc.disable()
    progress(f"reading {bundle}")
    knowledge: KnowledgeBase = load(*overlays)
    reading = read(bundle, progress=progress)
    return examine(replace(reading, incident=asked_incident(reading.incident, job, at, window)), knowledge, progress)


def _cross_check(case: Case) -> None:
    from .inference import check

    leading = [verdict.id for verdict in case.judgement.listed[:6]]
    found = check(case.compiled.network, case.judgement.posterior, leading)
    click.echo(
        f"causeline: pgmpy agrees on {len(found.causes)} causes (largest difference {found.largest_difference:.1e})",
        err=True,
    )


@main.command()
@BUNDLE
@click.option("--device", help="Only facts of this device or host.")
@click.option("--metric", help="Only series of this metric.")
@click.option("--limit", default=200, show_default=True, help="Most facts to print; 0 for all.")
def facts(bundle: Path, device: str | None, metric: str | None, limit: int) -> None:
    """What the adapters read from BUNDLE: facts with their records, and what was not understood."""
    from ..adapters import read
    from .listing import fact_lines, issue_lines

    with progress_on_stderr() as progress:
        reading = read(bundle, progress=progress)
    for line in fact_lines(reading.facts, device, metric, limit):
        click.echo(line)
    for line in issue_lines(reading.issues):
        click.echo(line, err=True)


@main.command()
@click.argument("investigation", type=click.Path(path_type=Path, dir_okay=False))
@format_option
def report(investigation: Path, form: str | None, output: Path | None) -> None:
    """Render a saved INVESTIGATION (JSON) in another format, without a new analysis."""
    write_text(_rendered(_saved(investigation), chosen_form(form, output)), output)


def _saved(investigation: Path) -> Investigation:
    from pydantic import ValidationError

    from .results import Investigation

    try:
        return Investigation.from_json(investigation.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(
            f"{investigation} cannot be read: {error}.", "Expected what `investigate -f json` wrote."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "top"
        raise UnreadableInput(
            f"{investigation}: {where}: {first['msg']} ({error.error_count()} problems).",
            "Expected what `investigate -f json` wrote.",
        ) from error


def _rendered(investigation: Investigation, form: str) -> str:
    if form == "bif":
        from .what_if import bif

        return bif(investigation)
    from ..reports import render

    return render(investigation, form)


@main.command("what-if")
@click.argument("investigation", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--do", "actions", multiple=True, help="H1=off: what would be left without this hypothesis. Repeatable.")
@click.option("--finding", "findings", multiple=True, help="E3=absent, present or unknown (not read). Repeatable.")
def what_if(investigation: Path, actions: tuple[str, ...], findings: tuple[str, ...]) -> None:
    """What a saved INVESTIGATION (JSON) would say without a cause, or had a finding been another.

    Asked of its explanation network, with all that was seen kept: `--do H1=off` is the world in which only H1, and
    what it set off, did not happen.
    """
    from .what_if import what_if as ask
    from .what_if import what_if_lines

    without = [name for name, state in _pairs(actions, "--do H1=off") if state == "off"]
    if len(without) < len(actions):
        raise UsageError("A cause can only be taken out.", "Write --do H1=off.")
    read = dict(_pairs(findings, "--finding E3=absent"))
    for line in what_if_lines(ask(_saved(investigation), without, read), without, read):
        click.echo(line)


def _pairs(options: tuple[str, ...], example: str) -> list[tuple[str, str]]:
    """NAME=STATE, the state behind the last `=`: names of places may hold one."""
    pairs = [option.rpartition("=")[::2] for option in options]
    if wrong := [option for option, (name, state) in zip(options, pairs, strict=True) if not (name and state)]:
        raise UsageError(f"{', '.join(wrong)!r} does not say what it should be.", f"Write {example}.")
    return pairs


STORE = click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("causeline.sqlite"),
    show_default=True,
    help="What `investigate --save` wrote.",
)


@main.group()
def incidents() -> None:
    """Saved investigations."""


@incidents.command("list")
@STORE
def list_incidents(store: Path) -> None:
    """Every saved investigation, one a line."""
    from .store import Store

    for row in Store(store).all():
        answer = f"{row.cause} at {row.place}" if row.cause else "no root cause"
        click.echo(f"{row.number:4} {row.incident:16} {row.job or '-':16} {row.onset or '-':24} {answer}")


@incidents.command("show")
@click.argument("number", type=int)
@STORE
@format_option
def show_incident(number: int, store: Path, form: str | None, output: Path | None) -> None:
    """Render the saved investigation NUMBER again."""
    from .store import Store

    write_text(_rendered(Store(store).get(number), chosen_form(form, output)), output)


@main.group()
def adapters() -> None:
    """The formats Causeline reads."""


@adapters.command("list")
def list_adapters() -> None:
    """Every adapter with what it reads."""
    from ..adapters import available

    for adapter in available():
        click.echo(f"{adapter.name:32} {adapter.reads}")


@adapters.command("try")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--hint",
    "hints",
    multiple=True,
    help="What the content does not say, as name=value: device, netdev, rdma_device, time, command.",
)
@click.option("--limit", default=40, show_default=True, help="Most facts to print; 0 for all.")
def try_adapter(file: Path, hints: tuple[str, ...], limit: int) -> None:
    """Which adapter claims FILE, and what it makes of it."""
    from ..adapters import try_file
    from .listing import fact_lines, issue_lines

    reading = try_file(file, _hints(hints))
    for one in reading.files:
        click.echo(f"{one.path}: {one.adapter or 'no adapter claims it'}, {one.facts} facts")
    for line in (*fact_lines(reading.facts, None, None, limit), *issue_lines(reading.issues)):
        click.echo(line)


def _hints(pairs: tuple[str, ...]) -> Hints:
    from dataclasses import fields

    from ..adapters import Hints

    known = [field.name for field in fields(Hints)]
    named = dict(pair.partition("=")[::2] for pair in pairs)
    if wrong := sorted(name for name, value in named.items() if name not in known or not value):
        raise UsageError(
            f"{', '.join(wrong)!r} is no hint with a value.", f"Write --hint name=value with one of {', '.join(known)}."
        )
    return Hints(**named)


@main.group()
def kb() -> None:
    """The knowledge base: causes, mechanisms and signs."""


@kb.command("check")
@KNOWLEDGE
def check_rules(overlays: tuple[Path, ...]) -> None:
    """Every mistake in the rules at once, with file, line and column."""
    from ..knowledge import lint, load
    from .errors import KnowledgeError

    if problems := lint.check(*overlays):
        raise KnowledgeError(problems)
    found = load(*overlays)
    click.echo(
        f"{len(found.causes)} causes, {len(found.mechanisms)} mechanisms, {len(found.signs)} signs: no problem found"
    )


@kb.command("test")
@click.argument("rules", nargs=-1)
@KNOWLEDGE
def test_rules(rules: tuple[str, ...], overlays: tuple[Path, ...]) -> None:
    """Play the cases of RULES (all without any) and say which fail."""
    from ..knowledge.case_run import run_cases

    passed = failed = 0
    for result in run_cases(rules, *overlays):
        passed, failed = passed + result.has_passed, failed + (not result.has_passed)
        click.echo(f"{'ok  ' if result.has_passed else 'FAIL'} {result.name}")
        for difference in result.differences:
            click.echo(f"     {difference}")
    click.echo(f"{passed} passed, {failed} failed")
    if failed:
        click.get_current_context().exit(1)


@kb.command("show")
@click.argument("rule")
@KNOWLEDGE
def show_rule(rule: str, overlays: tuple[Path, ...]) -> None:
    """One RULE as a page: mechanism, what supports it, what rules it out, what it looks like, what to do."""
    from ..knowledge import load, pages

    click.echo(pages.page(load(*overlays), rule), nl=False)


@kb.command("list")
@KNOWLEDGE
def list_rules(overlays: tuple[Path, ...]) -> None:
    """All rules, one a line."""
    from ..knowledge import load, pages

    for row in pages.rows(load(*overlays)):
        click.echo(f"{row.kind:10} {row.id:28} {row.title}")


@kb.command("new")
@click.argument("rule")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("knowledge"),
    show_default=True,
    help="The rules folder.",
)
def new_rule(rule: str, into: Path) -> None:
    """Start a cause: RULE is family.name; writes its YAML and its case file, and overwrites nothing."""
    from ..knowledge import pages

    for path, text in pages.scaffold(rule).items():
        target = into / path
        if target.exists():
            raise CauselineError(f"{target} exists already.", "Choose another id.")
        write_text(text, target)


main.add_command(drill)


if __name__ == "__main__":
    main()
