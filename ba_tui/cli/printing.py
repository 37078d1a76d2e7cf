"""``ba -p``: print one answer to stdout, for scripts and pipes, or talk with the calling program."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

from ba_tui.assembly import connect
from ba_tui.cli.commands import shell_parts
from ba_tui.cli.streams import output_failed, read_input, say
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.start import Start
from ba_tui.faces.headless import Printer, speak
from ba_tui.flags import ChatFlags
from ba_tui.permissions.trust.grants import trust_folder

LINES = "stream-json"
"""The input format for a conversation."""
CLAUDE = "claude-stream-json"
_EMPTY = "The prompt is empty.", "Type what you want to know or have done."


def print_answer(flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags) -> int:
    """Print the answer and return the exit code. Raises UsageError without a prompt or a session to continue."""
    talks = _talks(given)
    if given.trust and (told := trust_folder(folder)):
        say(told)
    if start.resume == "pick":
        raise UsageError("-p can't show the session picker.", "Name a session: ba -p -r ID, or use -c.")
    # Read before the event loop runs: there, the first Ctrl+C would cancel a turn.
    start = start if talks else replace(start, prompt=_prompt(start.prompt))
    if not talks and not start.prompt.strip():
        raise UsageError(*_EMPTY)
    return run_loop(_print(flags, start, folder, given))


def _talks(given: ChatFlags) -> bool:
    """Return whether the input is a conversation. Raises UsageError for flags that contradict each other."""
    talks = given.input_format == LINES
    if talks and given.prompt:
        raise UsageError("With --input-format stream-json the prompts come as lines of input.", "Leave the prompt out.")
    if talks and given.output_format not in {None, LINES, CLAUDE}:
        hint = f"Use --output-format {CLAUDE}, or leave it out."
        raise UsageError(f"--input-format stream-json can't be answered in {given.output_format}.", hint)
    if talks and given.strict_figures:
        raise UsageError("--strict-figures works with a single answer.", "Leave --input-format out.")
    if not talks and (lone := given.first_for("program")):
        raise UsageError(f"{lone} is for a conversation with a program.", "Add --input-format stream-json.")
    return talks


async def _print(flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags) -> int:
    start = Start(start.prompt, start.resume, start.fork, all=True)
    shell = shell_parts()
    if given.input_format == LINES:
        services, code, lost = await resolve_name(shell.converse)(flags, start, folder, given)
    else:
        services = connect(flags, folder, strict=True)
        if other := shell.formats.get(services.output_format):
            code, lost = await resolve_name(other)(services, start, folder, given)
        elif given.include_partial_messages:
            raise UsageError("--include-partial-messages is for Claude Code's lines.", f"Add --output-format {CLAUDE}.")
        else:
            printer = Printer(services.output_format, sys.stdout, sys.stderr)
            code = await speak(services, start, printer, given.timeout, strict=given.strict_figures)
            lost = printer.lost
    if services.tidy:
        # After the answer, so that its reader need not wait for the upkeep.
        services.tidy()
    return output_failed(lost, wanted=True) if lost else code


def _prompt(words: str) -> str:
    """Return the prompt, followed by the piped input."""
    piped: Sequence[str] = ()
    if not sys.stdin.isatty():
        data = read_input().decode("utf-8", "replace")
        piped = (data,) if data.strip() else ()
    return "\n\n".join(part for part in (words, *piped) if part)
