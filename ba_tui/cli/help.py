"""How ``--help`` lists commands and arguments, and what is said about a wrong command line.

Which commands there are, and how they are called, stands in main.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer
from typer._click.exceptions import NoSuchOption
from typer.core import TyperArgument, TyperGroup

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
