"""The command line as typer sees it: the group, its help, what is wrong with a line.

What a command does stands in its own file; ``chat`` is the hidden one behind ``ba [PROMPT]``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import typer
from typer._click.exceptions import NoArgsIsHelpError, NoSuchOption
from typer.core import TyperArgument, TyperGroup

from ba_tui.cli.commands import COMMANDS
from ba_tui.core.errors import UsageError
from ba_tui.core.text import wording
from ba_tui.core.text.patterns import regex

_LONGEST = 200
_NO_COMMAND = regex(r"No such command '(.*?)'\.")
_WORDED = (
    (r": Value error, ", ": "),
    (r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)$", r"Unexpected: \1"),
    (r"Input should be greater than or equal to ", "expected at least "),
    (r"Input should be less than or equal to ", "expected at most "),
    (r"Input should be a valid integer\b.*", "expected a whole number"),
    (r"Input should be a valid number\b.*", "expected a number"),
)


class Argument(TyperArgument):
    """Its name says what it is; the type of the variable behind it says nothing to a person."""

    def display_type_rich(self, ctx: Any) -> str | None:
        return None

    def _usage_display_name(self) -> str:
        name = self.display_name_raw if self.required else f"[{self.display_name_raw}]"
        return name if self.nargs == 1 else f"{name}..."


class HelpLines(TyperGroup):
    """A group whose commands are described in whole sentences, however narrow the terminal."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        for param in command.params if command else ():
            if isinstance(param, TyperArgument):
                param.__class__ = Argument
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(_LONGEST)) for name, one in commands if one and not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def slip(error: typer.TyperException, app: typer.Typer, routed: Sequence[str]) -> tuple[str, str]:
    """What is wrong with a command line, and what helps."""
    path, command = _called(app, routed)
    if isinstance(error, NoSuchOption):
        return f"Unknown option {error.option_name}.", _nearest(error.option_name, path, command)
    said = error.format_message().rstrip()
    if missing := _NO_COMMAND.match(said):
        return f"There is no command {missing[1]!r}.", _meant(missing[1], path, command)
    for pattern, better in _WORDED:
        said = re.sub(pattern, better, said)
    return said if said.endswith((".", "?", "!")) else f"{said}.", f"See {path} --help."


def _called(app: typer.Typer, routed: Sequence[str]) -> tuple[str, Any]:
    """The command that was meant, and how it is called; the hidden ``chat`` is explained with the whole."""
    path, command = "ba", typer.main.get_command(app)
    for word in routed:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        path, command = path if inner.hidden else f"{path} {word}", inner
    return path, command


def _meant(name: str, path: str, command: Any) -> str:
    """A hint with the sub-command that means the same, or that was mistyped."""
    from ba_tui.cli import guesses  # noqa: PLC0415 - for a slip alone

    meant = guesses.subcommand(name, list(getattr(command, "commands", {})))
    return f"Did you mean {path} {meant}?" if meant else f"See {path} --help."


def _nearest(option: str, path: str, command: Any) -> str:
    """A hint with the option that means the same, or that was mistyped."""
    from ba_tui.cli.foreign import habits  # noqa: PLC0415 - for a slip alone

    known = [name for param in command.params for name in (*param.opts, *param.secondary_opts)]
    if words := habits.option(option, known):
        return words
    close = wording.slip(option, known)
    return f"Did you mean {close}?" if close else f"See {path} --help."


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
        found = getattr(import_module(f"ba_tui.{command.module}"), command.name)
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
