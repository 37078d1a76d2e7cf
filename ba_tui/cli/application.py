"""The command line as typer sees it: the group, its help, what is wrong with a line.

What a command does stands in its own file; ``chat`` is the hidden one behind ``ba [PROMPT]``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import typer
from typer._click.exceptions import NoArgsIsHelpError

from ba_tui.cli.commands import COMMANDS
from ba_tui.cli.help import HelpLines, slip
from ba_tui.core.errors import UsageError

EPILOG = """\b
Examples:
  ba                                     start, and chat
  ba "why does test_parser fail?"        start with a question
  ba -c                                  go on where you left off
  git diff | ba -p "review this"         print one answer
  ba -p --output-format json "…"         the same for scripts
  ba guide                               learn how to do things

\b
Exit codes:
  0 ok · 1 usage or configuration · 2 model or infrastructure
  3 a limit was reached · 4 an approval was denied
  5 a figure is unsourced · 6 data differs or has traps · 130 interrupted"""


class CliGroup(HelpLines):
    """A group whose help also lists what ``ba [PROMPT]`` takes."""

    _whole = False

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        if not self._whole or ctx.parent is not None:
            return own
        return [*(param for param in self.get_command(ctx, "chat").get_params(ctx) if param.name != "help"), *own]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self._whole = True
        try:
            super().format_options(ctx, formatter)
        finally:
            self._whole = False

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        own = super().shell_complete(ctx, incomplete)
        if ctx.parent is not None or not incomplete.startswith("-"):
            return own
        return [*self.commands["chat"].shell_complete(ctx, incomplete), *own]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS] [PROMPT] | COMMAND [ARGS]..."]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # argv was routed before, so a command comes first, or one of these.
        if args and args[0] in {"--help", "-h"}:
            sys.stdout.write(ctx.get_help() + "\n")
            ctx.exit()
        if args and args[0].startswith("-"):
            return super().parse_args(ctx, args)
        ctx.args, ctx._protected_args = args[1:], args[:1]
        return args


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands. Each costs the import of its file, so one line is given one of them."""
    app = typer.Typer(
        name="ba",
        cls=CliGroup,
        help="An assistant for coding and data analysis in your terminal. Type a prompt, or start it and chat.",
        epilog=EPILOG,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_whole)
    for name in names:
        command = COMMANDS[name]
        found = getattr(import_module(f"ba_tui.cli.{command.module}"), command.name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, help=command.help, cls=HelpLines)
        else:
            app.command(name, help=command.help, hidden=command.hidden)(found)
    return app


def _whole() -> None:
    """A group stays one although a single command is in it."""


def invoke(routed: Sequence[str], names: Iterable[str]) -> int:
    """Run a routed line with the commands of ``names``; returns the exit code.

    Raises:
        UsageError: the line is wrong.
    """
    app = application(names)
    try:
        result = app(list(routed), prog_name="ba", standalone_mode=False)
    except NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return 1
    except typer.TyperException as error:
        raise UsageError(*slip(error, app, routed)) from error
    except typer.Abort:
        return 130
    return result if isinstance(result, int) else 0
