"""The typer application: the command group, its help, and messages about wrong lines.

Each command has its own module; ``chat`` is the hidden command behind ``ba [PROMPT]``, whose options are the table of
flags.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from inspect import Parameter, Signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer._click.exceptions import NoArgsIsHelpError, NoSuchOption
from typer._click.shell_completion import CompletionItem
from typer.core import TyperArgument, TyperGroup

from ba_tui.cli.commands import guesses, shell_commands
from ba_tui.cli.launch import start_chat
from ba_tui.command import Command
from ba_tui.core.errors import UsageError
from ba_tui.core.text import wording
from ba_tui.core.text.patterns import regex
from ba_tui.flags import FLAGS, ROWS, ChatFlags, Flag, Mode

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
    """An argument shown without its type: its name tells the user more."""

    def display_type_rich(self, ctx: Any) -> str | None:
        return None

    def _usage_display_name(self) -> str:
        name = self.display_name_raw if self.required else f"[{self.display_name_raw}]"
        return name if self.nargs == 1 else f"{name}..."


class HelpLines(TyperGroup):
    """A group whose help shows whole sentences, even in a narrow terminal."""

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
    """Return the error for a wrong command line, with a hint."""
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
    """Return the intended command and its name for the user; the hidden ``chat`` is reported as ``ba`` itself."""
    command: Any = typer.main.get_command(app)
    path = "ba"
    for word in routed:
        inner = command.get_command(typer.Context(command), word) if isinstance(command, TyperGroup) else None
        if inner is None:
            break
        path, command = path if inner.hidden else f"{path} {word}", inner
    return path, command


def _meant(name: str, path: str, command: Any) -> str:
    """Return a hint that names the sub-command with the same meaning or a similar spelling."""
    meant = guesses().subcommand(name, list(getattr(command, "commands", {})))
    return f"Did you mean {path} {meant}?" if meant else f"See {path} --help."


def _nearest(option: str, path: str, command: Any) -> str:
    """Return a hint that names the option with the same meaning or a similar spelling."""
    known = [name for param in command.params for name in (*param.opts, *param.secondary_opts)]
    if words := guesses().option(option, known):
        return words
    close = wording.slip(option, known)
    return f"Did you mean {close}?" if close else f"See {path} --help."


EPILOG = """\b
Examples:
  ba                                     start, and chat
  ba "why does test_parser fail?"        start with a question
  ba -c                                  continue the last session
  git diff | ba -p "review this"         print one answer
  ba -p --output-format json "…"         the same for scripts
  ba guide                               learn how to do things

\b
Exit codes:
  0 ok · 1 usage or configuration · 2 model or infrastructure
  3 a limit was reached · 4 an approval was denied
  5 a figure is unsourced · 6 data differs or has traps · 130 interrupted"""


class CliGroup(HelpLines):
    """The group of all commands, whose help also lists the options of ``ba [PROMPT]``.

    A command's module is imported when the command is called or completed; the list of commands needs none of them.
    """

    _whole = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in shell_commands() and cmd_name not in self.commands:
            self.add_command(_loaded(shell_commands()[cmd_name]), cmd_name)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self._lines(ctx))

    def _lines(self, ctx: Any) -> dict[str, str]:
        """Return the line of help of each command, by name. A command without one that can't be loaded is left out."""
        found: dict[str, str] = {}
        for name, row in ((name, row) for name, row in shell_commands().items() if not row.hidden):
            with suppress(UsageError):
                found[name] = row.help or self.get_command(ctx, name).get_short_help_str(_LONGEST)
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines(ctx).items()))

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
        if incomplete.startswith("-"):
            flags = self.get_command(ctx, "chat").shell_complete(ctx, incomplete)
            return [*flags, *super().shell_complete(ctx, incomplete)]
        lines = self._lines(ctx).items()
        return [CompletionItem(name, help=line) for name, line in lines if name.startswith(incomplete)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS] [PROMPT] | COMMAND [ARGS]..."]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and args and args[0] in FLAGS:
            # The shell completes what follows flags of ``ba [PROMPT]``; that line was not routed.
            args = ["chat", *args]
        # ``route`` has run, so the first word is a command or one of these options.
        if args and args[0] in {"--help", "-h"}:
            sys.stdout.write(ctx.get_help() + "\n")
            ctx.exit()
        if args and args[0].startswith("-"):
            return super().parse_args(ctx, args)
        ctx.args, ctx._protected_args = args[1:], args[:1]
        return args


def option(row: Flag) -> Any:
    """Return typer's option for a flag."""
    return typer.Option(*row.names, help=row.help, metavar=row.metavar or None, min=row.least, max=row.most)


# Types of parameters, for commands that take the same flags.

Model = Annotated[str | None, option(FLAGS["--model"])]
PermissionMode = Annotated[Mode | None, option(FLAGS["--permission-mode"])]
AsRoot = Annotated[bool, option(FLAGS["--yes-bypass-as-root"])]
Allow = Annotated[list[str] | None, option(FLAGS["--allow"])]
MaxCost = Annotated[float | None, option(FLAGS["--max-cost"])]
WorkingFolder = Annotated[Path | None, option(FLAGS["--cwd"])]
Theme = Annotated[str | None, option(FLAGS["--theme"])]
NoColor = Annotated[bool, option(FLAGS["--no-color"])]


def chat(**given: Any) -> int:
    flags: dict[str, Any] = {name: None if value == [] else value for name, value in given.items()}
    return start_chat(ChatFlags(**flags))


def _parameters() -> list[Parameter]:
    """Return the prompt and the flags as typer reads them."""
    words = typer.Argument(metavar="PROMPT", help="What you want to know or have done.")
    prompt = Parameter("prompt", Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[list[str] | None, words])
    return [prompt, *map(_parameter, ROWS)]


def _parameter(row: Flag) -> Parameter:
    default = getattr(ChatFlags(), row.field)
    return Parameter(row.field, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[row.hint, option(row)])


vars(chat)["__signature__"] = Signature(_parameters(), return_annotation=int)


def application() -> typer.Typer:
    """Return the typer application. It loads each command when it is needed."""
    return _frame(
        name="ba",
        cls=CliGroup,
        help="An assistant for coding and data analysis in your terminal. Type a prompt, or start it and chat.",
        epilog=EPILOG,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _frame(**options: Any) -> typer.Typer:
    """Return an application without commands that is a group, even when it gets one command."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, **options)
    app.callback()(_whole)
    return app


def _loaded(row: Command) -> Any:
    """Import a command's module and return the command. Raises UsageError when that fails."""
    try:
        found = resolve_name(row.cli)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"ba {row.name} can't be loaded: {error}.", "Update or remove its package.") from error
    frame = _frame()
    if isinstance(found, typer.Typer):
        frame.add_typer(found, name=row.name, help=row.help, cls=HelpLines)
    else:
        frame.command(row.name, help=None if found.__doc__ else row.help, hidden=row.hidden)(found)
    group: Any = typer.main.get_command(frame)
    return group.commands[row.name]


def _whole() -> None:
    """Make the application a group."""


def invoke(routed: Sequence[str]) -> int:
    """Run a routed line and return the exit code.

    Raises:
        UsageError: the line is wrong.
    """
    app = application()
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
