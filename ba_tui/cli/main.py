"""From argv to an exit code: routing, and errors in one or two lines.

No typer here: what a conversation needs is read by ``flags``, and only other lines wait for typer's import.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence

from ba_tui.cli.commands import COMMANDS
from ba_tui.cli.flags import read_flags
from ba_tui.cli.launch import start_chat
from ba_tui.cli.streams import FULL, output_failed
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.text.wording import slip as slip_of
from ba_tui.core.text.wording import with_hint

MOST_WORDS = 3
"""Words of a line that may be a command with a slip; a longer one is a prompt."""
PASS = ("--help", "-h", "--install-completion", "--show-completion")


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
    try:
        result = _work(route(argv))()
        sys.stdout.flush()
    except UsageError as error:
        return _fail(str(error), error.hint)
    except BaError as error:
        return _fail(str(error), error.hint, code=2)
    except BrokenPipeError as error:
        return output_failed(error)
    except SystemExit as left:
        # How typer ends in that case.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        return output_failed(left.__context__)
    except OSError as error:
        return _broken(error)
    except RuntimeError as error:
        if (refused := _no_thread(error)) is None:
            raise
        return _fail(str(refused), refused.hint, code=2)
    return result


def _no_thread(error: RuntimeError) -> BaError | None:
    from ba_tui.core.errors import no_thread  # noqa: PLC0415 - only what went wrong pays for it

    return no_thread(error)


def _work(routed: list[str]) -> Callable[[], int]:
    completing = "_BA_COMPLETE" in os.environ
    flags = read_flags(routed[1:]) if routed[0] == "chat" and not completing else None
    if flags is None and routed[0] == "chat" and not completing:
        from ba_tui.cli.foreign.habits import translated  # noqa: PLC0415 - only a line that is not plainly ours needs it

        routed = ["chat", *translated(routed[1:])]
        flags = read_flags(routed[1:])
    if flags is not None:
        found = flags
        return lambda: start_chat(found)
    from ba_tui.cli.application import invoke  # noqa: PLC0415 - typer: a sixth of a second

    return lambda: invoke(routed, COMMANDS if completing or routed[0] not in COMMANDS else routed[:1])


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
    from ba_tui.core.text.untrusted import paintable  # noqa: PLC0415 - only what went wrong pays for it

    text = f"ba: {with_hint(message, hint)}".encode("utf-8", "backslashreplace").decode()
    sys.stderr.write(paintable(text, newlines=False) + "\n")
    return code
