"""Turn argv into an exit code: route the line, and report errors in one or two lines.

This module does not import typer, which is slow: ``flags`` reads the flags of a conversation without it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pkgutil import resolve_name

from ba_tui.cli.commands import guesses, shell_commands, shell_parts
from ba_tui.cli.launch import start_chat
from ba_tui.cli.streams import FULL, output_failed, say
from ba_tui.core.errors import BaError, UsageError, no_thread
from ba_tui.core.text.wording import slip, with_hint
from ba_tui.flags import FLAGS, read_flags

MOST_WORDS = 3
"""A line of at most this many words may be a mistyped command; a longer one is a prompt."""
PASS = ("--help", "-h", "--install-completion", "--show-completion")


def route(argv: Sequence[str]) -> list[str]:
    """Return argv with the hidden command ``chat`` first, unless it names a command; a bare ``-r`` opens the picker."""
    if argv and (argv[0] in PASS or _names_command(argv[0])):
        return list(argv)
    routed = ["chat"]
    for index, word in enumerate(argv):
        if word == "--":
            return [*routed, *argv[index:]]
        if word in {"-h", "--help"}:
            return ["--help"]
        following = argv[index + 1] if index + 1 < len(argv) else "-"
        flag = FLAGS.get(word)
        routed.append(f"{flag.name}={flag.bare}" if flag and flag.bare and following.startswith("-") else word)
    return routed


def _names_command(word: str) -> bool:
    if word.startswith("-"):
        return False
    command = shell_commands().get(word)
    return command is not None and not command.hidden


def _meant(argv: Sequence[str]) -> str:
    """Return advice for a first word that is another assistant's command or a misspelt one; empty for a prompt."""
    word = argv[0] if argv else ""
    if word in shell_commands() or word.startswith("-") or not word.replace("-", "").isalpha():
        return ""
    if advice := guesses().shell_command(argv):
        return advice
    names = [name for name, command in shell_commands().items() if not command.hidden]
    close = slip(word, names) if word.isalpha() and len(argv) <= MOST_WORDS else ""
    return f"Did you mean ba {close}?" if close else ""


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are printed as one or two lines on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if meant := _meant(argv):
        return _fail(f"There is no command {argv[0]!r}.", f"{meant} To send it: ba -- {' '.join(argv)}")
    try:
        result = _started(route(argv))
        sys.stdout.flush()
    except UsageError as error:
        return _fail(str(error), error.hint)
    except BaError as error:
        return _fail(str(error), error.hint, code=2)
    except BrokenPipeError as error:
        return output_failed(error)
    except SystemExit as left:
        # typer's exit code in that case.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        return output_failed(left.__context__)
    except OSError as error:
        return _broken(error)
    except RuntimeError as error:
        if (refused := no_thread(error)) is None:
            raise
        return _fail(str(refused), refused.hint, code=2)
    return result


def _started(routed: list[str]) -> int:
    """Start a conversation, or run the command of a routed line, and return the exit code."""
    if routed[0] == "chat" and "_BA_COMPLETE" not in os.environ:
        if flags := read_flags(routed[1:]):
            return start_chat(flags)
        routed = ["chat", *resolve_name(shell_parts().translate)(routed[1:])]
        if flags := read_flags(routed[1:]):
            return start_chat(flags)
    from ba_tui.cli.application import invoke  # noqa: PLC0415 - typer: a sixth of a second

    return invoke(routed)


def _broken(error: OSError) -> int:
    try:
        sys.stdout.flush()
    except OSError as refused:
        return output_failed(refused)
    if error.errno in FULL and not error.filename:
        return output_failed(error)
    said = f"{error.strerror or error}: {error.filename or ''}".rstrip(": .")
    cure = "Make room, or write somewhere else." if error.errno in FULL else "Check the path and its permissions."
    return _fail(f"{said}.", cure, code=2)


def _fail(message: str, hint: str, *, code: int = 1) -> int:
    say(with_hint(message, hint))
    return code
