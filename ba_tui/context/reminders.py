"""core.agent.Interceptors that remind the model: of the goal in long work, and that the window is nearly full."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from ba_tui.context.compression.gauge import Gauge
from ba_tui.context.compression.rounds import changed, rounds_of
from ba_tui.core.events import Steered
from ba_tui.core.messages import Message, Text, reminder
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch

GOAL = 1_500
"""Bytes of the goal that are said again."""
_FULL = "The context window is"
_STALE = f"<system-reminder>\n{_FULL} "
EARLY = 0.9
"""The share of the level at which it is compressed."""


class Refocus:
    """Says the goal and the open todos again with every ``rounds``-th prompt of those that stand; 0 for never."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._told: WeakKeyDictionary[Transcript, int] = WeakKeyDictionary()

    async def before(self, branch: Branch) -> None:
        transcript = branch.transcript
        number = transcript.standing
        due = self._rounds and number and number % self._rounds == 0
        if not due or self._told.get(transcript) == transcript.turns:
            return
        self._told[transcript] = transcript.turns
        left = [todo for todo in transcript.todos if not todo.done]
        if not left:
            return
        lines = [f"- {todo.content}{' (in progress)' if todo.status == 'in_progress' else ''}" for todo in left]
        goal = _goal(transcript)
        said = f"The conversation began with this request:\n{goal}\n\n" if goal else ""
        branch.emit(Steered(reminder(f"{said}Still open on the todo list:\n" + "\n".join(lines))))

    async def after(self, reply: Message, branch: Branch) -> None:
        """The todos have a reminder of their own for the end."""


def _goal(transcript: Transcript) -> str:
    """What the person asked for first, also when only notes hold it by now."""
    from ba_tui.context.compression.notes import read  # noqa: PLC0415 - most conversations need no such reminder
    from ba_tui.context.compression.user_text import texts_of  # noqa: PLC0415

    parts = rounds_of(transcript.messages, transcript.rounds)
    texts = [*read(parts.earlier).texts, *(text for item in parts.rounds[:1] for text in texts_of(item))]
    first = next((text.within(GOAL) for text in texts if text.round == 1), None)
    return "".join(block.text for block in first.blocks) if first else ""


def without_stale(messages: Sequence[Message]) -> tuple[Message, ...]:
    """``messages`` without reminders of a full window: a compression makes them untrue."""
    return tuple(map(_without_stale, messages))


def _without_stale(message: Message) -> Message:
    kept = [block for block in message.blocks if not (isinstance(block, Text) and block.text.startswith(_STALE))]
    return changed(message, kept) if message.role == "user" and 0 < len(kept) < len(message.blocks) else message


class NearlyFull:
    """Says once that the window fills, before ``trigger`` of it is reached, and again after it has been emptier.
    ``automatic``: whether the conversation is then compressed."""

    def __init__(self, gauge: Gauge, trigger: float, *, automatic: bool) -> None:
        self._gauge = gauge
        self._trigger = trigger
        self._automatic = automatic
        self._told: set[str] = set()

    async def before(self, branch: Branch) -> None:
        messages, early = branch.transcript.messages, self._trigger * EARLY
        if self._gauge.spacious(messages, early):
            share = 0.0
        else:
            await self._gauge.ready(messages)
            share = self._gauge.used(messages) / self._gauge.room
        if share <= early:
            self._told.discard(branch.name)
        elif branch.name not in self._told and (share <= self._trigger or not self._automatic):
            self._told.add(branch.name)
            what = (
                "Soon its older part is replaced by notes. Say what you must not lose, or put it on the todo list."
                if self._automatic
                else "Come to an end, and say what is left to do; the person can compress the conversation: /compact."
            )
            branch.emit(Steered(reminder(f"{_FULL} {share:.0%} full. {what}")))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing to say at the end."""
