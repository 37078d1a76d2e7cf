"""The command line as typer sees it: routing of argv, the group, errors in one line.

What a command does stands in its own file; ``chat`` is the hidden one behind ``ba [PROMPT]``.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import typer
from typer._click.exceptions import NoArgsIsHelpError

from ba_tui.cli.help import HelpLines, slip
from ba_tui.cli.streams import FULL, output_failed
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.text.wording import slip as slip_of
from ba_tui.core.text.wording import with_hint
from ba_tui.core.values import frozen

EPILOG = """\b
Examples:
  ba                                     start, and chat
  ba "why does test_parser fail?"        start with a question
  ba -c                                  go on where you left off
  git diff | ba -p "review this"         print one answer
  ba -p --output-format json "…"         the same for scripts

\b
Exit codes:
  0 ok · 1 usage or configuration · 2 model or infrastructure
  3 a limit was reached · 4 an approval was denied · 130 interrupted"""


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


@frozen
class CliCommand:
    """A command in the file of ``module``: its ``app`` of sub-commands, or the function ``name``."""

    module: str
    name: str = "app"
    help: str | None = None
    hidden: bool = False


COMMANDS = {
    "chat": CliCommand("chat", "chat", hidden=True),
    "demo": CliCommand("demo", "demo", "Take the guided tour: real tools, sample data."),
    "run": CliCommand("run", "run"),
    "sessions": CliCommand("sessions", help="List, show, search, export, import, fork, compare and delete sessions."),
    "config": CliCommand("config", help="Show, check and change settings."),
    "permissions": CliCommand("permissions", help="List, check, add and remove permission rules."),
    "hooks": CliCommand("hooks", help="List the commands that run on events."),
    "audit": CliCommand("audit", "audit"),
    "tools": CliCommand("tools", help="List, show, try and write tools."),
    "skills": CliCommand("skills", help="List, show, check, install, write and remove skills."),
    "tokens": CliCommand("tokens", "tokens"),
    "trust": CliCommand("trust", "trust"),
    "doctor": CliCommand("doctor", "doctor"),
}
MOST_WORDS = 3
"""Words of a line that may be a command with a slip; a longer one is a prompt."""
PASS = ("--help", "-h", "--install-completion", "--show-completion")


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


def route(argv: Sequence[str]) -> list[str]:
    """argv with the hidden ``chat`` put first unless a sub-command is; a bare ``-r`` asks for the picker."""
    if argv and (argv[0] in PASS or (argv[0] in COMMANDS and not COMMANDS[argv[0]].hidden)):
        return list(argv)
    routed = ["chat"]
    for index, word in enumerate(argv):
        if word == "--":
            return [*routed, *argv[index:]]
        if word in {"-h", "--help"}:
            return ["--help"]
        following = argv[index + 1] if index + 1 < len(argv) else "-"
        bare = word in {"-r", "--resume"} and following.startswith("-")
        routed.append("--resume=pick" if bare else word)
    return routed


def _slip(argv: Sequence[str]) -> str:
    """The command that a first word was probably meant to be; empty for what reads like a prompt."""
    word = argv[0]
    if not word.isalpha() or word in COMMANDS or len(argv) > MOST_WORDS:
        return ""
    return slip_of(word, (name for name, command in COMMANDS.items() if not command.hidden))


def _guessed(argv: Sequence[str]) -> str:
    """What to do instead of a command of another assistant; empty for what reads like a prompt."""
    if argv[0] in COMMANDS or not argv[0].replace("-", "").isalpha():
        return ""
    from ba_tui.cli import guesses  # noqa: PLC0415 - for what is no command alone

    return guesses.command(argv)


def run(argv: Sequence[str]) -> int:
    """Run one command line; errors of ours and of typer end as one or two lines on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if argv and (words := _guessed(argv) or ((meant := _slip(argv)) and f"Did you mean ba {meant}?")):
        return _fail(f"There is no command {argv[0]!r}.", f"{words} To send it: ba -- {' '.join(argv)}")
    routed = route(argv)
    completing = "_BA_COMPLETE" in os.environ
    app = application(COMMANDS if completing or routed[0] not in COMMANDS else routed[:1])
    try:
        result = app(routed, prog_name="ba", standalone_mode=False)
        sys.stdout.flush()
    except NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return 1
    except typer.TyperException as error:
        return _fail(*slip(error, app, routed))
    except UsageError as error:
        return _fail(str(error), error.hint)
    except BaError as error:
        return _fail(str(error), error.hint, code=2)
    except typer.Abort:
        return 130
    except BrokenPipeError as error:
        return output_failed(error)
    except SystemExit as left:
        # How typer ends in that case.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        return output_failed(left.__context__)
    except OSError as error:
        return _broken(error)
    return result if isinstance(result, int) else 0


def _broken(error: OSError) -> int:
    try:
        sys.stdout.flush()
    except OSError as refused:
        return output_failed(refused)
    if error.errno in FULL and not error.filename:
        return output_failed(error)
    said = f"{error.strerror or error}: {error.filename or ''}".rstrip(": .")
    cure = "Make room, or write somewhere else." if error.errno in FULL else "Check the path and its rights."
    return _fail(f"{said}.", cure, code=2)


def _fail(message: str, hint: str, *, code: int = 1) -> int:
    from ba_tui.core.text.untrusted import paintable  # noqa: PLC0415 - only what went wrong pays for it

    text = f"ba: {with_hint(message, hint)}".encode("utf-8", "backslashreplace").decode()
    sys.stderr.write(paintable(text, newlines=False) + "\n")
    return code
