"""A model that follows a script: the tour's engine, ``--model scripted:FILE``, and the fake of most tests.

It knows no HTTP and no vendor. A script in YAML, every key optional but ``steps``::

    delay: 0.03            # seconds before each piece of text; 0 when not given
    steps:                 # one step answers one request; they are taken in order
      - think: I should look first.
        say: Let me read the file.
        calls:
          - {tool: read_file, args: {path: sales.csv}}
        usage: {input: 900, output: 40, cache_read: 0, cache_write: 0}
      - when: {denied: true}           # only if a call of the last answer was denied; skipped otherwise
        say: Then I leave it as it is.
      - when: {denied: false}          # only if calls were answered and none was denied
        say: Done.
        next: Thank you                # the prompt that a face may suggest when the turn ends here
        stop: end_turn                 # any of the stop reasons; found out by itself when not given
      - - when: {said: "@sales"}       # a list of alternatives: the first whose conditions hold is given
          say: Thank you for the file.
        - say: Mention the file.
          stays: true                  # the next request finds the script at these alternatives again
      - error: {kind: overloaded, message: Too busy., retry_after: 2}
    last:                  # the answer to every request after the last step; without it those are errors
      say: That was all.

Conditions are listed at ``When``; all that are given must hold. Wherever an argument of a call is
``{if: CONDITIONS, then: A, else: B}``, the call gets A or B. An answer that the person stopped is given again; with
``again: false`` the script goes on. ``error`` kinds are those of core.errors: overloaded, rate_limited,
connection_lost, auth_failed, model_not_found, bad_request, context_overflow; with ``after`` pieces of text before it.
``delay`` may also stand in a step.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ba_tui.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    Passing,
    ProviderError,
    RateLimited,
)
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Block, Message, StopReason, Text, Thinking, ToolUse, Usage
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.script_conditions import Talk, When, decided

MODEL = ModelInfo("scripted", "scripted", "scripted", family="scripted", known=True, vision=True, thinking=True)
PIECE = regex(r"\s*\S{1,12}|\s+")
ERRORS: Mapping[str, type[ProviderError]] = {
    kind.kind: kind
    for kind in (Overloaded, RateLimited, ConnectionLost, AuthFailed, ModelNotFound, BadRequest, ContextOverflow)
}


@frozen
class Planned:
    """A call the script makes. ``id`` is made up from its place when empty."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""


@frozen
class Failure:
    """A request that fails: at once, or ``after`` so many pieces of the step's words."""

    kind: str
    message: str = "The script says so."
    retry_after: float | None = None
    after: int = 0

    def error(self) -> ProviderError:
        kind = ERRORS[self.kind]
        if issubclass(kind, Passing):
            return kind(self.message, retry_after=self.retry_after)
        return kind(self.message)


@frozen
class Step:
    """One answer of the model, or one failure of it."""

    say: str = ""
    think: str = ""
    calls: tuple[Planned, ...] = ()
    usage: Usage | None = None
    stop: StopReason | None = None
    error: Failure | None = None
    when: When | None = None
    delay: float | None = None
    next: str = ""
    stays: bool = False
    again: bool = True
    before: int = 0
    """How many alternatives to it stand right before it."""
    behind: int = 0
    """How many alternatives to it stand right behind it."""

    def message(self, model: str, place: str, talk: Talk) -> Message:
        """The answer as a whole; ``place`` makes the ids of its calls."""
        blocks: list[Block] = []
        if self.think:
            blocks.append(Thinking(self.think))
        if self.say:
            blocks.append(Text(self.say))
        for number, call in enumerate(self.calls):
            # A copy by way of JSON: the script stays as it was, whatever becomes of the message.
            args = json.loads(json.dumps(decided(dict(call.args), talk)))
            blocks.append(ToolUse(call.id or f"call_{place}_{number}", call.tool, args))
        stop = self.stop or ("tool_use" if self.calls else "end_turn")
        return Message("assistant", tuple(blocks), usage=self.usage, stop=stop, model=model, origin="assistant")


@frozen
class ModelScript:
    steps: tuple[Step, ...]
    last: Step | None = None
    delay: float = 0.0


class ScriptedProvider:
    """Answers each request with the next step. A conversation that is taken up again goes on where it stood."""

    def __init__(
        self,
        script: ModelScript | Sequence[Step],
        model: ModelInfo = MODEL,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._script = script if isinstance(script, ModelScript) else ModelScript(tuple(script))
        self._model = model
        self._sleep = sleep
        self._cursor: int | None = None
        self._cut: int | None = None
        """The step whose answer is under way, or was stopped, if it is to be given again."""
        self._asked = 0

    @property
    def model(self) -> ModelInfo:
        return self._model

    def connect(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """A script holds no connection."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        talk = Talk(request.messages)
        index, step = self._next(talk)
        place = str(index) if step is not self._script.last else f"last_{self._asked}"
        delay = self._script.delay if step.delay is None else step.delay
        message = step.message(self._model.id, place, talk)
        self._cut = index if step.again else None
        for sent, chunk in enumerate(_chunks(message)):
            if step.error and sent >= step.error.after:
                break
            if delay:
                await self._sleep(delay)
            yield chunk
        self._cut = None
        if step.error:
            raise step.error.error()
        yield message

    def _next(self, talk: Talk) -> tuple[int, Step]:
        if self._cursor is None:
            self._cursor = self._resume(talk.messages)
        steps = self._script.steps
        index = _seek(steps, self._cursor, talk) if self._cut is None else self._cut
        self._asked += 1
        step = steps[index] if index < len(steps) else self._script.last
        if step is None:
            raise ProviderError("The script has no step left.", "Give it more steps, or a “last” one.")
        self._cursor = _behind(index, step)
        return index, step

    def _resume(self, messages: Sequence[Message]) -> int:
        """Where a script stands that has given the answers of ``messages``; its errors left no trace there."""
        steps, cursor = self._script.steps, 0
        for number, message in enumerate(messages):
            if message.role == "assistant" and message.model == self._model.id:
                talk = Talk(messages[:number])
                cursor = _seek(steps, cursor, talk)
                while cursor < len(steps) and steps[cursor].error is not None:
                    cursor = _seek(steps, cursor + 1, talk)
                cursor = _behind(cursor, steps[cursor]) if cursor < len(steps) else cursor
        return cursor


def _behind(index: int, step: Step) -> int:
    """Where the script goes on after ``step``."""
    return index - step.before if step.stays else index + 1 + step.behind


def _seek(steps: Sequence[Step], start: int, talk: Talk) -> int:
    return next(
        (index for index in range(start, len(steps)) if (when := steps[index].when) is None or when.holds(talk)),
        len(steps),
    )


def _chunks(message: Message) -> Iterator[ReplyChunk]:
    """The deltas of ``message``, in pieces of about a word."""
    for block in message.blocks:
        match block:
            case Thinking(thinking=text):
                yield from map(_thought, PIECE.findall(text))
            case Text(text=text):
                yield from map(_word, PIECE.findall(text))
            case ToolUse():
                yield ToolInputDelta(block.id, block.name, len(json.dumps(block.input)))
            case _:
                pass


def _thought(text: str) -> ThinkingDelta:
    return ThinkingDelta(text)


def _word(text: str) -> TextDelta:
    return TextDelta(text)
