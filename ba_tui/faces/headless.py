"""Print mode: one prompt, one answer, as text, one JSON object or JSON lines. Calls that need approval are denied.

stdout carries data only; messages go to stderr. Its JSON carries ``schema_version`` SCHEMA.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from ba_tui.core import events
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, ErrorInfo, SessionNotFound
from ba_tui.core.events import MAIN, Event, MemoryLine, Notice
from ba_tui.core.messages import Message, Thinking
from ba_tui.core.ports.permissions import split_rules
from ba_tui.core.questions import Question, Reply
from ba_tui.core.services import Services, begin
from ba_tui.core.start import Start
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line, with_hint
from ba_tui.core.turn import Turn
from ba_tui.faces.run_result import INFRASTRUCTURE, SCHEMA, USAGE, RunResult, figure_fields, figure_lines
from ba_tui.processes.signals import interrupts

if TYPE_CHECKING:
    from ba_tui.plotting.plan_exports import PlanReporter

QUOTED = 80
"""Most characters of a memory in a line."""
NOBODY = "Nobody is here to approve this. It was denied; go on without it and say so."
NOBODY_ANSWERS = "Nobody is here to answer. Decide yourself and name the assumption."


class Printer:
    """Writes a run in one of the three formats."""

    def __init__(self, format: str, out: TextIO, err: TextIO) -> None:
        self._format = format
        self._out = out
        self._err = err
        self._started = time.monotonic()
        self._held: list[str] | None = []
        """Notices from before ``init``, which must be the first line."""
        self._plans: PlanReporter | None = None
        self.lost: OSError | None = None
        """Why ``out`` can't be written any more."""

    def begin(self, conversation: Conversation) -> None:
        if self._format == "stream-json":
            line = {"schema_version": SCHEMA, "session_id": conversation.id, "model": conversation.model}
            self._line("init", **line, cwd=str(conversation.cwd))

    def event(self, event: Event) -> None:
        if self._format == "stream-json":
            for kind, fields in _lines(event):
                self._line(kind, agent=event.agent, **fields)
        else:
            self._narrate(event)

    def finish(self, outcome: RunResult) -> None:
        if self._format == "text":
            if outcome.result:
                self._write(paintable(outcome.result).rstrip("\n") + "\n")
            elif outcome.ending == "done" and not outcome.error:
                self.say("The model returned no text.")
            if outcome.error:
                self.say(outcome.error.with_hint)
            elif outcome.timed_out:
                self.say("Stopped at the time limit; this answer is incomplete.")
            for told in (*refusals(outcome.denied), *figure_lines(outcome.figures or FigureReport())):
                self.say(told)
            if outcome.strict and outcome.unchecked:
                self.say("The figures of this answer were not checked. Set analysis.verify to show.")
        elif self._format == "json":
            self._write(_json(outcome.report(self._started)) + "\n")
        else:
            self._line("result", **outcome.report(self._started))

    def failed(self, error: BaError) -> None:
        """Report an error that prevented the session."""
        if self._format != "text":
            self.finish(RunResult(error=error.info()))
        self.say(error.with_hint)

    def say(self, text: str) -> None:
        self._err.write(f"ba: {paintable(text, newlines=False)}\n")
        self._err.flush()

    def _narrate(self, event: Event) -> None:
        if isinstance(event, events.PlanChanged | events.SubTaskChanged):
            self._planned(event)
        match event:
            case events.AgentStarted(description=description, resumed=resumed, worktree=copy):
                goes = "continues" if resumed else "started"
                where = f" (in the copy {copy})" if copy else ""
                self.say(f"{_asker(event.agent)}{goes}: {description}".rstrip(": ") + where)
            case events.ToolStarted(call=call, target=target):
                self.say(f"{_asker(event.agent)}{call.name} {target}".rstrip())
            case events.TurnEnded(reason=reason, error=error) if event.agent != MAIN:
                why = f": {error.message}" if error else ""
                self.say(f"{_asker(event.agent)}{'finished' if reason == 'done' else f'ended ({reason}){why}'}")
            case events.Retrying(reason=reason, delay=delay, attempts=attempts):
                what = "Trying again" if attempts else "Next request"
                self.say(f"{reason} {what} in {max(1, round(delay))} s.")
            case events.Compressed(before=before, after=after):
                self.say(f"Compressed the conversation: {before:,} to {after:,} tokens.")
            case events.MemoriesUsed(memories=memories):
                self.say(f"Used {count(len(memories), 'memory')}: {_quoted(memories)}")
            case events.MemoryChanged(stored=(_, *_) as stored):
                self.say(f"Remembered: {_quoted(stored)} To take it back: ba memory forget {stored[0].id}")
            case events.MemoryChanged(forgotten=(_, *_) as forgotten):
                self.say(f"Forgot {count(len(forgotten), 'memory')}.")
            case Notice(text=text, hint=hint):
                self.say(with_hint(text, hint))
            case _:
                pass

    def _planned(self, event: Event) -> None:
        from ba_tui.plotting.plan_exports import PlanReporter  # noqa: PLC0415 - few runs have a plan

        self._plans = self._plans or PlanReporter()
        if line := self._plans.said(event):
            self.say(line)

    def _line(self, type: str, /, **fields: Any) -> None:
        line = _json({"type": type, **fields}) + "\n"
        if self._held is not None:
            if type not in {"init", "result"}:
                self._held.append(line)
                return
            line, self._held = "".join([line, *self._held] if type == "init" else [*self._held, line]), None
        self._write(line)

    def _write(self, text: str) -> None:
        if self.lost:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as error:
            self.lost = error


def _json(value: dict[str, Any]) -> str:
    # ASCII keeps control characters and bidi marks of foreign text out of a terminal.
    return json.dumps(value, ensure_ascii=True, default=str)


def _lines(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the stream-json lines of one event."""
    match event:
        case events.MessageDone(message=message):
            yield from _message_lines(message)
        case events.ToolFinished(call_id=call_id, result=result, duration=duration):
            fields = {"id": call_id, "ok": not result.failed, "output": result.text}
            yield "tool_result", {**fields, "duration_ms": round(duration * 1000)}
            if result.changes and result.changes.todos is not None:
                yield "todo", {"items": [asdict(todo) for todo in result.changes.todos]}
        case events.Retrying(reason=reason, attempts=0):
            yield "notice", {"level": "info", "message": reason, "hint": ""}
        case events.Retrying(reason=reason):
            yield "error", {"message": reason, "retrying": True, "delay_s": event.delay}
        case events.Compressed(strategy=strategy, before=before, after=after, cost=cost, kept=kept, usage=usage):
            fields = {"strategy": strategy, "before": before, "after": after, "cost_usd": cost, "kept": kept}
            yield "compaction", {**fields, "usage": usage.record} if usage else fields
        case events.FiguresChecked(report=report):
            yield "figures", dict(figure_fields(report))
        case Notice(text=text, level=level, hint=hint):
            yield "notice", {"level": level, "message": text, "hint": hint}
        case events.TurnEnded(agent="main", error=ErrorInfo() as error):
            yield "error", {"message": error.message, "hint": error.hint, "kind": error.kind, "retrying": False}
        case _:
            yield from _work_lines(event)


def _work_lines(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the stream-json lines of an event about memory, agents or plans."""
    match event:
        case events.MemoriesUsed(memories=memories):
            yield "memories_used", {"memories": [asdict(memory) for memory in memories]}
        case events.MemoryChanged(stored=stored, forgotten=forgotten, private=private):
            fields = {"stored": [asdict(memory) for memory in stored], "forgotten": list(forgotten)}
            yield "memory_changed", {**fields, "private": private}
        case events.MemoryProposed(proposals=proposals):
            yield "memory_proposed", {"proposals": [asdict(memory) for memory in proposals]}
        case events.ActivityChanged(activity=activity, before=before):
            yield "activity", {"activity": activity, "before": before}
        case events.AgentPaused(paused=paused):
            yield "agent_paused", {"paused": paused}
        case events.AgentStarted():
            fields = {"agent_type": event.kind, "description": event.description, "call_id": event.call_id}
            copy = {"worktree": event.worktree} if event.worktree else {}
            yield "agent_started", {**fields, "background": event.background, "resumed": event.resumed, **copy}
        case events.TurnEnded(reason=reason, error=error) if event.agent != MAIN:
            yield "agent_ended", {"reason": reason, "error": asdict(error) if error else None}
        case events.PlanChanged() | events.SubTaskChanged():
            from ba_tui.plotting.plan_exports import plan_fields  # noqa: PLC0415 - few runs have a plan

            yield from plan_fields(event)
        case _:
            pass


def _asker(agent: str) -> str:
    """Return the prefix that names a sub-agent; empty for the main agent."""
    return f"{agent.removeprefix(f'{MAIN}/')}: " if agent.startswith(f"{MAIN}/") else ""


def _quoted(memories: Sequence[MemoryLine]) -> str:
    return " ".join(f"“{one_line(memory.text, QUOTED)}”" for memory in memories)


def _message_lines(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in message.blocks:
        if isinstance(block, Thinking) and block.thinking:
            yield "thinking", {"text": block.thinking}
    if message.text:
        yield "message", {"role": "assistant", "text": message.text}
    for call in message.calls:
        yield "tool_use", {"id": call.id, "name": call.name, "input": call.input}
    if message.usage:
        yield "usage", message.usage.record


def refusals(denied: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines about denied calls: the reason, and the flags that would allow the call."""
    if not denied:
        return
    yield f"{len(denied)} call{' was' if len(denied) == 1 else 's were'} denied:"
    for each in denied:
        call = f"{each['tool']} {each['target']}".rstrip()
        if not each["asked"]:
            yield f"  {call}: {each['reason']}"
            continue
        rules = split_rules(each["rule"]) if each["rule"] else ()
        flags = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules if rule.isprintable())
        how = f" To allow it: {flags}" if flags else ""
        yield f"  {call}: no user was present to approve it. {each['asked'].rstrip('.')}.{how}"


def denial(question: Question) -> Reply:
    """Return the reply of print mode: approvals and limits are denied; the model decides choices itself."""
    words = {"permission": NOBODY, "choice": NOBODY_ANSWERS}
    return Reply("deny", words.get(question.kind, ""), by="nobody")


async def speak(
    services: Services, start: Start, printer: Printer, timeout: float | None = None, *, strict: bool = False
) -> int:
    """Run ``start`` to its end, or until its output is lost, and print it; returns the exit code. ``strict``: unsourced
    figures fail the run."""
    for notice in services.notices:
        printer.event(notice)
    try:
        conversation = begin(services.library, start)
    except BaError as error:
        printer.failed(error)
        return USAGE if isinstance(error, SessionNotFound) or error.kind == "usage" else INFRASTRUCTURE
    try:
        for event in await conversation.history():
            if isinstance(event, Notice) and event.damage:
                printer.event(event)
        missing = services.setup.missing(conversation.model)
        if missing:
            printer.failed(BaError(missing))
            return USAGE
        if conversation.inventory.commands:
            await asyncio.to_thread(conversation.inventory.commands.check, start.prompt)
        turn = conversation.say(start.prompt)
    except BaError as error:
        await conversation.close()
        printer.failed(error)
        return USAGE if error.kind == "usage" else INFRASTRUCTURE
    outcome = RunResult(conversation.id, conversation.model, strict=strict)
    timer = asyncio.get_running_loop().call_later(timeout, _expire, turn, outcome) if timeout else None
    await print_turn(conversation, turn, printer, outcome)
    if timer:
        timer.cancel()
    return outcome.code


async def print_turn(
    conversation: Conversation,
    turn: Turn,
    printer: Printer,
    outcome: RunResult,
    answer: Callable[[Question], Reply] = denial,
) -> None:
    """Print ``turn`` until it ends or its output is lost, then close the conversation. ``answer``
    replies to questions in place of the user.

    The result is printed before closing, which may have to wait for helper processes."""

    def stop_because(why: str) -> None:
        turn.stopped_by = why
        turn.cancel()

    with interrupts(turn.cancel, stop_because):
        printer.begin(conversation)
        async for event in turn:
            outcome.apply(event)
            printer.event(event)
            if printer.lost:
                turn.cancel()
            if isinstance(event, events.Asked):
                turn.answer(event.ask_id, answer(event.question))
    await conversation.saving.retry()
    outcome.unsaved = conversation.saving.missing
    printer.finish(outcome)
    await conversation.close()
    outcome.unsaved = conversation.saving.missing
    if outcome.unsaved:
        printer.say(with_hint(*outcome.unsaved.at_end))


def _expire(turn: Turn, outcome: RunResult) -> None:
    outcome.timed_out = True
    turn.cancel()
