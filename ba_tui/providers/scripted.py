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
        stop: end_turn                 # any of the stop reasons; found out by itself when not given
      - error: {kind: overloaded, message: Too busy., retry_after: 2}
    last:                  # the answer to every request after the last step; without it those are errors
      say: That was all.

``when`` knows ``denied``, ``failed`` (any error result) and ``interrupted``. ``error`` kinds are those of
core.errors: overloaded, rate_limited, connection_lost, auth_failed, model_not_found, bad_request,
context_overflow; with ``after`` pieces of text before it. ``delay`` may also stand in a step.
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
from ba_tui.core.messages import Block, Message, StopReason, Text, Thinking, ToolOutput, ToolUse, Usage
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

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
class When:
    """What the last calls must have come to; None does not matter."""

    denied: bool | None = None
    failed: bool | None = None
    interrupted: bool | None = None

    def holds(self, messages: Sequence[Message]) -> bool:
        outputs = [block for block in messages[-1].blocks if isinstance(block, ToolOutput)] if messages else []
        kinds = {output.error.kind for output in outputs if output.is_error and output.error}
        facts = (
            (self.denied, "permission_denied" in kinds),
            (self.failed, any(output.is_error for output in outputs)),
            (self.interrupted, "interrupted" in kinds),
        )
        return bool(outputs) and all(wanted is None or wanted == found for wanted, found in facts)


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

    def message(self, model: str, place: str) -> Message:
        """The answer as a whole; ``place`` makes the ids of its calls."""
        blocks: list[Block] = []
        if self.think:
            blocks.append(Thinking(self.think))
        if self.say:
            blocks.append(Text(self.say))
        for number, call in enumerate(self.calls):
            # A copy by way of JSON: the script stays as it was, whatever becomes of the message.
            args = json.loads(json.dumps(dict(call.args)))
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
        place, step = self._next(request.messages)
        delay = self._script.delay if step.delay is None else step.delay
        message = step.message(self._model.id, place)
        for sent, chunk in enumerate(_chunks(message)):
            if step.error and sent >= step.error.after:
                break
            if delay:
                await self._sleep(delay)
            yield chunk
        if step.error:
            raise step.error.error()
        yield message

    def _next(self, messages: Sequence[Message]) -> tuple[str, Step]:
        if self._cursor is None:
            self._cursor = self._resume(messages)
        steps = self._script.steps
        index = _seek(steps, self._cursor, messages)
        self._cursor = index + 1
        self._asked += 1
        if index < len(steps):
            return str(index), steps[index]
        if self._script.last is None:
            raise ProviderError("The script has no step left.", "Give it more steps, or a “last” one.")
        return f"last_{self._asked}", self._script.last

    def _resume(self, messages: Sequence[Message]) -> int:
        """Where a script stands that has given the answers of ``messages``; its errors left no trace there."""
        said = [step if step.error is None else None for step in self._script.steps]
        cursor = 0
        for number, message in enumerate(messages):
            if message.role == "assistant" and message.model == self._model.id:
                cursor = _seek(self._script.steps, cursor, messages[:number])
                while cursor < len(said) and said[cursor] is None:
                    cursor = _seek(self._script.steps, cursor + 1, messages[:number])
                cursor += 1
        return cursor


def _seek(steps: Sequence[Step], start: int, messages: Sequence[Message]) -> int:
    return next(
        (index for index in range(start, len(steps)) if (when := steps[index].when) is None or when.holds(messages)),
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
