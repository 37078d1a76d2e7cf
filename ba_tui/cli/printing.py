"""``ba -p``: one answer on stdout, for scripts and pipes, or a conversation with the program that started ba."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.assembly import connect
from ba_tui.cli.flags import ChatFlags
from ba_tui.cli.streams import output_failed, read_input
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.headless import Printer, speak
from ba_tui.permissions.trust.grants import trust_folder

if TYPE_CHECKING:
    from ba_tui.faces.claude.host import ClaudeHost, HostOptions

LINES = "stream-json"
"""The format of input that is a conversation."""
CLAUDE = "claude-stream-json"
_EMPTY = "The prompt is empty.", "Type what you want to know or have done."


def print_answer(flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags) -> int:
    """Returns the exit code. Raises UsageError when there is nothing to ask, or no session to go on with."""
    talks = _talks(given)
    if given.trust and (told := trust_folder(folder)):
        sys.stderr.write(f"ba: {paintable(told, newlines=False)}\n")
    if start.resume == "pick":
        raise UsageError("-p can't show the session picker.", "Name a session: ba -p -r ID, or use -c.")
    # Before the loop runs: while it does, the first Ctrl+C would be for a turn.
    start = start if talks else replace(start, prompt=_prompt(start.prompt))
    if not talks and not start.prompt.strip():
        raise UsageError(*_EMPTY)
    return run_loop(_print(flags, start, folder, given))


def _talks(given: ChatFlags) -> bool:
    """Whether the input is a conversation. Raises UsageError for flags that do not go together."""
    talks = given.input_format == LINES
    if talks and given.prompt:
        raise UsageError("With --input-format stream-json the prompts come as lines of input.", "Leave the prompt out.")
    if talks and given.output_format not in {None, LINES, CLAUDE}:
        hint = f"Use --output-format {CLAUDE}, or leave it out."
        raise UsageError(f"--input-format stream-json can't be answered in {given.output_format}.", hint)
    if talks and given.strict_figures:
        raise UsageError("--strict-figures is for one answer.", "Leave --input-format out.")
    alone = {
        "--replay-user-messages": given.replay_user_messages,
        "--permission-prompt-tool": given.permission_prompt_tool,
    }
    for name, wanted in alone.items():
        if wanted and not talks:
            raise UsageError(f"{name} is for a conversation with a program.", "Add --input-format stream-json.")
    return talks


async def _print(flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags) -> int:
    start = Start(start.prompt, start.resume, start.fork, all=True)
    if given.input_format == LINES:
        services, code, lost = await _converse(flags, start, folder, given)
    else:
        services = connect(flags, folder, strict=True)
        if services.output_format == CLAUDE and given.strict_figures:
            raise UsageError(f"{CLAUDE} has no figures.", "Use text, json or stream-json with --strict-figures.")
        if services.output_format == CLAUDE:
            host, options = _host(services, folder), _options(given)
            code, lost = await host.run(start, _one_line(start.prompt), options), host.lost
        elif given.include_partial_messages:
            raise UsageError("--include-partial-messages is for Claude Code's lines.", f"Add --output-format {CLAUDE}.")
        else:
            printer = Printer(services.output_format, sys.stdout, sys.stderr)
            code = await speak(services, start, printer, given.timeout, strict=given.strict_figures)
            lost = printer.lost
    if services.tidy:
        # The answer is out: whoever reads it need not wait for this.
        services.tidy()
    return output_failed(lost, wanted=True) if lost else code


async def _converse(
    flags: Mapping[str, object], start: Start, folder: Path, given: ChatFlags
) -> tuple[Services, int, OSError | None]:
    """What was talked with, the exit code, and why stdout can't be written any more."""
    # Only who asks for it pays for it.
    from ba_tui.cli.foreign.input_lines import input_lines  # noqa: PLC0415
    from ba_tui.faces.claude.requests import opening, prompt_settings  # noqa: PLC0415

    lines = input_lines()
    # The first line may bring the system prompt, which a conversation has from its beginning.
    first = await anext(lines, b"")
    fields = opening(first)
    services = connect({**flags, **prompt_settings(fields)}, folder, strict=True)
    host = _host(services, folder)
    code = await host.run(start, _with(first, lines), _options(given, fields))
    return services, code, host.lost


def _host(services: Services, folder: Path) -> ClaudeHost:
    from ba_tui.cli.foreign.words import ClaudeWords  # noqa: PLC0415 - only who asks for it pays for it
    from ba_tui.faces.claude.host import ClaudeHost  # noqa: PLC0415

    return ClaudeHost(services, ClaudeWords(folder), sys.stdout, sys.stderr)


def _options(given: ChatFlags, opening: Mapping[str, Any] | None = None) -> HostOptions:
    from ba_tui.faces.claude.host import HostOptions  # noqa: PLC0415 - only who asks for it pays for it

    return HostOptions(
        partial=given.include_partial_messages,
        replay=given.replay_user_messages,
        asks=given.permission_prompt_tool is not None,
        timeout=given.timeout,
        opening=opening or {},
    )


async def _with(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for line in lines:
        yield line


async def _one_line(prompt: str) -> AsyncIterator[bytes]:
    yield json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}).encode()


def _prompt(words: str) -> str:
    """The prompt and what was piped in, below it."""
    piped: Sequence[str] = ()
    if not sys.stdin.isatty():
        data = read_input().decode("utf-8", "replace")
        piped = (data,) if data.strip() else ()
    return "\n\n".join(part for part in (words, *piped) if part)
