"""What every command does alike: errors become messages and exit codes, progress goes to stderr, a report to stdout or
a file."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .errors import CauselineError

Progress = Callable[[str], None]


class ErrorsAsMessages(click.Group):
    """Turns our errors into a message and an exit code; anything else is an internal error, told with how to report
    it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CauselineError as error:
            click.echo(f"causeline: {error.message}", err=True)
            if error.remedy:
                click.echo(error.remedy, err=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # a pipe that closed early (`| head`) is click's to end quietly
        except Exception as error:
            logging.getLogger(__name__).debug("internal error", exc_info=True)
            click.echo(f"causeline: internal error: {type(error).__name__}: {error}", err=True)
            click.echo("Please report it with the output of the same command and `causeline -v`.", err=True)
            ctx.exit(1)


@contextmanager
def progress_on_stderr() -> Iterator[Progress]:
    """Says on stderr what is being done: one changing line on a terminal, a line a stage otherwise."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: click.echo(f"causeline: {stage}", err=True)
        return
    with console.status("starting") as status:
        yield status.update


KNOWLEDGE = click.option(
    "--knowledge",
    "overlays",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Your own rules over ours: a folder. May be repeated.",
)


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --format and --output (its parameters `form` and `output`)."""
    options = (
        click.option(
            "-f",
            "--format",
            "form",
            type=click.Choice(["terminal", "html", "json", "md", "bif"]),
            help="Default: by the ending of -o, else terminal.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write to this file instead of stdout.",
        ),
    )
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def write_text(text: str, output: Path | None) -> None:
    """Text to a file, its folder made if need be, or to stdout. Raises CauselineError where it cannot be written."""
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CauselineError(f"{output} cannot be written: {error.strerror}.", "Choose another file for -o.") from error
    click.echo(f"causeline: wrote {output}", err=True)


def chosen_form(form: str | None, output: Path | None) -> str:
    """The format asked for, else that of the file's ending, else the terminal's."""
    by_ending = {".html": "html", ".json": "json", ".md": "md", ".bif": "bif"}
    return form or by_ending.get(output.suffix if output else "", "terminal")
