"""Notices the same call again and again: a warning at the second; at the third another model goes on, once in a turn,
where one is set for reasoning, else the person is asked.

A successful change of a file in between makes a repetition honest work (edit, test, edit, test) and starts anew.
So does another result of a tool that is meant to be called again (``facts.repeatable``): polling is no loop while it
brings news.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from typing import Any

from ba_tui.core.errors import StopTurn
from ba_tui.core.events import Notice
from ba_tui.core.loop_limits import Reasoner
from ba_tui.core.messages import ToolOutput, ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.tools.failed import outcome

WINDOW = 10
WARNING = (
    "Note: this call is the same as an earlier one of this turn. If it did not bring you further, "
    "change the approach; a third time the person is asked."
)
ESCALATED = (
    "Note: the same call of {tool} was made {count} times in this turn, which did not help. Another model made those "
    "calls; you go on from here. Find out why they repeat and take another way: one more, and the person is asked."
)


class _Allowed(set[str]):
    """The calls of one agent and turn that the person let go on."""


class _Results(dict[str, bytes]):
    """Hashes of what the newest calls of repeatable tools gave in one agent's turn, by the ids of the calls."""

    def keep(self, id: str, result: ToolResult) -> bytes:
        given = f"{result.text}\0{result.meta}"
        found = self[id] = sha256(given.encode("utf-8", "surrogatepass")).digest()
        while len(self) > WINDOW:
            del self[next(iter(self))]
        return found


def repeats(writers: Collection[str]) -> Guard:
    """``writers``: the names of the tools that change files."""

    def guard(tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            allowed = call.branch.state(_Allowed)
            before = call.branch.state(_Results) if tool.facts.repeatable else None
            same = _same_calls(call, writers, allowed)
            count = _fruitless(same, before)
            escalated = count >= 3 and _escalate(tool, call, count)
            if count >= 3 and not escalated:
                await _ask(tool, args, call, count)
                allowed.add(call.id)
            result = await outcome(tool, args, call)
            if before is not None:
                news = before.get(same[0].id if same else "") != before.keep(call.id, result)
                count = 1 if news else count
            if count < 2:
                return result
            note = ESCALATED.format(tool=tool.name, count=count) if escalated else WARNING
            return replace(result, text=f"{result.text}\n\n{note}")

        return replace(tool, run=run)

    return guard


def _escalate(tool: Tool, call: Call, count: int) -> bool:
    """Let the model of the slot reasoning go on for the rest of the turn; False when it was tried, or none is set."""
    reasoner = call.branch.state(Reasoner)
    name = "" if reasoner.asked else reasoner.name()
    if not name:
        return False
    reasoner.asked = True
    text = f"The same call of {tool.name} was made {count} times. {name} answers for the rest of this turn."
    call.branch.emit(Notice(text, "warning"))
    return True


def _fruitless(same: Sequence[ToolUse], results: Mapping[str, bytes] | None) -> int:
    """Return how many times a call was made, itself included, of which the ``same`` calls before it brought nothing
    new: with ``results``, only those count that gave what the newest gave."""
    if results is None or not same:
        return 1 + len(same)
    newest = results.get(same[0].id)
    if newest is None:
        # Both calls run side by side: what the other one gives is not known.
        return 1
    return 1 + sum(1 for _ in takewhile(lambda each: results.get(each.id) == newest, same))


def _same_calls(call: Call, writers: Collection[str], allowed: Collection[str]) -> Sequence[ToolUse]:
    """Return the same calls that were made since something else was achieved, the newest first."""
    transcript = call.branch.transcript
    recent = _recent(transcript, call.id)
    if not recent or not any(_same(earlier, recent[0]) for earlier in recent[1:]):
        return ()
    calls = transcript.calls_since_prompt()
    same: list[ToolUse] = []
    for earlier in recent[1:]:
        if _same(earlier, recent[0]):
            if earlier.id in allowed:
                break
            same.append(earlier)
        elif earlier.name in writers and _new(calls, earlier) and _succeeded(transcript, earlier.id):
            break
    return same


def _recent(transcript: Transcript, call_id: str) -> list[ToolUse]:
    """The call and those made just before it in this turn, newest first: it costs the same in turns of any length."""
    found: list[ToolUse] = []
    for message in reversed(transcript.messages):
        if message.role == "user":
            if message.origin == "user":
                break
            continue
        if len(found) >= WINDOW:
            break
        for use in reversed(message.calls):
            if found or use.id == call_id:
                found.append(use)
    return found[:WINDOW]


def _same(one: ToolUse, other: ToolUse) -> bool:
    """The same tool with equal arguments, in whatever order they were written."""
    try:
        return one.name == other.name and one.input == other.input
    except RecursionError:
        return False


def _new(calls: Sequence[ToolUse], use: ToolUse) -> bool:
    """Whether no call before ``use`` was the same."""
    return next(earlier for earlier in (*calls, use) if _same(earlier, use)).id == use.id


def _succeeded(transcript: Transcript, call_id: str) -> bool:
    for message in reversed(transcript.messages):
        for block in message.blocks:
            if isinstance(block, ToolOutput) and block.tool_use_id == call_id:
                return not block.is_error
    return False


async def _ask(tool: Tool, args: Mapping[str, Any], call: Call, count: int) -> None:
    text = f"Identical call of {tool.name}, {count} times. Continue?"
    reason = "The agent seems stuck in a loop."
    question = Question("continue", text, call_id=call.id, tool=tool.name, args=dict(args), reason=reason)
    reply = await call.ask(question)
    if reply.choice == "deny":
        words = f" They said: {reply.text.strip()}" if reply.text.strip() else ""
        raise StopTurn(f"Stopped after {count} identical calls of {tool.name}.{words}", "Say what to do differently.")
