"""``ba -p``: one answer on stdout, for scripts and pipes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ba_tui.assembly import connect
from ba_tui.cli.flags import ChatFlags
from ba_tui.cli.streams import output_failed, read_input
from ba_tui.core.errors import UsageError
from ba_tui.core.start import Start
from ba_tui.faces.headless import Printer, speak
from ba_tui.permissions.trust.grants import trust_folder


def print_answer(flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags) -> int:
    """Returns the exit code. Raises UsageError when there is nothing to ask, or no session to go on with."""
    if given.trust:
        trust_folder(folder)
    if start.resume == "pick":
        raise UsageError("-p can't show the session picker.", "Name a session: ba -p -r ID, or use -c.")
    # Before the loop runs: while it does, the first Ctrl+C would be for a turn.
    start = replace(start, prompt=_prompt(start.prompt))
    if not start.prompt.strip():
        raise UsageError("The prompt is empty.", "Type what you want to know or have done.")
    return asyncio.run(_print(flags, start, folder, given.timeout))


async def _print(flags: Mapping[str, object], start: Start, folder: Path, timeout: float | None) -> int:
    services = connect(flags, folder, strict=True)
    printer = Printer(services.output_format, sys.stdout, sys.stderr)
    code = await speak(services, Start(start.prompt, start.resume, start.fork, all=True), printer, timeout)
    if services.tidy:
        # The answer is out: whoever reads it need not wait for this.
        services.tidy()
    return output_failed(printer.lost, wanted=True) if printer.lost else code


def _prompt(words: str) -> str:
    """The prompt and what was piped in, below it."""
    piped: Sequence[str] = ()
    if not sys.stdin.isatty():
        data = read_input().decode("utf-8", "replace")
        piped = (data,) if data.strip() else ()
    return "\n\n".join(part for part in (words, *piped) if part)
