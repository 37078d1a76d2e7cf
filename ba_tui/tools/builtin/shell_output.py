"""The tools shell_output and shell_kill: what a background shell has printed, and its end.

Which shells there are is background.py; starting one is the shell tool's.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import Mapping
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.processes.terminal_text import plain, shortened
from ba_tui.tools.builtin.shell import OUTPUT_CHARS
from ba_tui.tools.definitions import Definition
from ba_tui.tools.running.background import Shells, Work

MAX_WAIT_SECONDS = 300.0
NOTHING = "(nothing new)"


def shell_output_tool(definition: Definition, shells: Shells) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        job = shells.find(args["id"])
        await _wait(job, min(float(args.get("wait", 0)), MAX_WAIT_SECONDS), args)
        ended, ref = job.ended, job.process.output.ref
        text = await asyncio.to_thread(_read, job, args)
        if ended:
            job.told = True
        display = job.ending("", await asyncio.to_thread(shells.output, job.id))
        return ToolResult(f"[{state(job)}]\n{text}", display, summary=_summary(job), artifact=ref)

    facts = ToolFacts("shell", target="id", repeatable=True, bulky=True)
    return Tool("shell_output", definition.description, definition.input_schema, run, timeout=None, facts=facts)


def shell_kill_tool(definition: Definition, shells: Shells) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        job = shells.find(args["id"])
        already = job.ended
        await shells.kill(job.id)
        text = await asyncio.to_thread(_read, job, {})
        said = f"{job.id} had ended already" if already else f"{job.id} was ended, and all it had started"
        display = job.ending("", await asyncio.to_thread(shells.output, job.id))
        printed = f"\nNot read yet:\n{text}" if text != NOTHING else ""
        ref = job.process.output.ref
        return ToolResult(f"{said}.\n[{state(job)}]{printed}", display, summary=_summary(job), artifact=ref)

    facts = ToolFacts("shell", target="id")
    return Tool("shell_kill", definition.description, definition.input_schema, run, timeout=None, facts=facts)


def state(job: Work) -> str:
    """One line about a shell: what it does, for how long, how much it printed and where that is kept."""
    output = job.process.output
    seconds = (job.until or time.time()) - job.since
    if not job.ended:
        doing = "running"
    elif job.killed:
        doing = "was killed"
    else:
        doing = "ended" if job.exit_code is None else f"ended with exit code {job.exit_code}"
        doing = ", ".join((doing, *job.verdict.parts))
    parts = [f"{job.id} {doing}", f"{seconds:.0f} s", f"{output.total:,} bytes printed"]
    if output.ref:
        parts.append(f"{'' if output.trouble else 'all of them: '}read_artifact {output.ref}")
    if output.trouble:
        parts.append(output.trouble)
    return ", ".join(parts)


def _summary(job: Work) -> str:
    if not job.ended:
        return "running"
    if job.killed:
        return "killed"
    if job.exit_code is None:
        return "ended"
    return " · ".join((f"exit {job.exit_code}", *job.verdict.parts))


async def _wait(job: Work, seconds: float, args: Mapping[str, Any]) -> None:
    """Until there is something to read, it has ended, or the time is over."""
    stirred = asyncio.Event()
    stop = job.process.listen(lambda text: stirred.set())
    try:
        async with asyncio.timeout(seconds):
            while seconds and not job.ended:
                stirred.clear()
                if await asyncio.to_thread(_new, job, args):
                    return
                await stirred.wait()
    except TimeoutError:
        return
    finally:
        stop()


def _new(job: Work, args: Mapping[str, Any]) -> str:
    """What ``args`` ask for of the output that the model has not read, without counting it as read."""
    return _chosen(_unread(job, lines="filter" in args)[1], args)


def _read(job: Work, args: Mapping[str, Any]) -> str:
    if args.get("all"):
        job.seen = job.process.output.total
        text = plain(job.process.output.text())
    else:
        gone, text, job.seen = _unread(job, lines="filter" in args)
        if gone:
            text = f"[… {gone:,} bytes before this are no longer in memory …]\n{text}"
    text = _chosen(text, args)
    return shortened(text.rstrip("\n"), OUTPUT_CHARS) or ("(nothing)" if args.get("all") else NOTHING)


def _unread(job: Work, *, lines: bool) -> tuple[int, str, int]:
    """How much is gone, the unread rest, and where it ends: never within a character, or with ``lines`` a line."""
    ended = job.ended
    gone, data = job.process.output.after(job.seen)
    if not ended:
        if lines:
            data = data[: data.rfind(b"\n") + 1]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(data[-4:])
        data = data[: len(data) - len(decoder.getstate()[0])]
    return gone, plain(data.decode("utf-8", "replace")), job.seen + gone + len(data)


def _chosen(text: str, args: Mapping[str, Any]) -> str:
    """The lines with the words of ``filter``, and of these the last ``tail``."""
    wanted, tail = args.get("filter"), args.get("tail")
    if wanted is None and tail is None:
        return text
    lines = text.rstrip("\n").split("\n")
    if wanted is not None:
        lines = [line for line in lines if wanted.lower() in line.lower()]
    return "\n".join(lines[-tail:] if tail else lines)
