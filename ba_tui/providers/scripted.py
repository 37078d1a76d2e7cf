"""A model that follows a script: the tour's engine, ``--model scripted:FILE``, and the fake of most tests.

It knows no HTTP and no vendor. A script in YAML, every key optional but ``steps``::

    delay: 0.03            # seconds before each piece of text; 0 when not given
    steps:                 # one step answers one request; they are taken in order
      - think: I should look first.
        say: Let me read the file.
        calls:
          - {tool: read_file, args: {path: sales.csv}}
        usage: {input: 900, output: 40, cache_read: 0, cache_write: 0}
      - when: {denied: true}           # only if a call of the last answer was denied; else skipped
        say: Then I leave it as it is.
      - when: {denied: false}          # only if calls were answered and none was denied
        say: Done.
        next: Thank you                # the prompt that a face may suggest when the turn ends here
        stop: end_turn                 # any of the stop reasons; derived when left out
      - - when: {said: "@sales"}       # alternatives: the first whose conditions are met is used
          say: Thank you for the file.
        - say: Mention the file.
          stays: true                  # the next request gets one of these alternatives again
      - error: {kind: overloaded, message: Too busy., retry_after: 2}
    last:                  # the answer to every request after the last step; without it those are errors
      say: That was all.

Conditions are listed at ``When``; all of them must be met. Where an argument of a call is
``{if: CONDITIONS, then: A, else: B}``, the call gets A or B. An answer that the user stopped is repeated; with
``again: false`` the script continues. ``error`` kinds are those of core.errors: overloaded, rate_limited,
connection_lost, auth_failed, model_not_found, bad_request, context_overflow; with ``after`` pieces of text before it.
A step may also have a ``delay``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    RateLimited,
    ServerOverloaded,
    TransientError,
)
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Block, Message, StopReason, Text, Thinking, ToolOutput, ToolUse, Usage
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.marked_yaml import YamlNode, read_yaml
from ba_tui.settings.document import SettingsDocument


@frozen
class ScriptTalk:
    """The messages of a request, as the conditions of a script read them."""

    messages: Sequence[Message]

    @property
    def newest(self) -> Sequence[ToolOutput]:
        """Return the results of the last calls."""
        return list(_outputs(self.messages[-1:]))

    def succeeded(self) -> frozenset[str]:
        """Return the ids of all calls that succeeded."""
        return frozenset(output.tool_use_id for output in _outputs(self.messages) if not output.is_error)


@frozen
class When:
    """Conditions of a step or an argument; None and empty ones are ignored.

    ``denied``, ``failed``, ``interrupted``: whether a call of the last answer was denied, returned an error or was
    interrupted; neither true nor false if the last answer had no calls. ``compacted``: whether a summary replaces
    earlier messages. ``done``: ids of calls that must all have succeeded. ``said``: text in the newest message to the
    model. ``result``: text in a result of the last calls. ``unless``, in files ``not``: conditions that must not all
    hold.
    """

    denied: bool | None = None
    failed: bool | None = None
    interrupted: bool | None = None
    compacted: bool | None = None
    done: tuple[str, ...] = ()
    said: str = ""
    result: str = ""
    unless: When | None = None

    def holds(self, talk: ScriptTalk) -> bool:
        return all(self._each(talk))

    def _each(self, talk: ScriptTalk) -> Iterator[bool]:
        yield from self._of_calls(talk.newest)
        yield self.compacted in {None, any(message.origin == "compaction" for message in talk.messages)}
        yield talk.succeeded().issuperset(self.done)
        yield not self.said or (bool(talk.messages) and self.said in talk.messages[-1].text)
        yield not self.result or any(self.result in output.content for output in talk.newest)
        yield self.unless is None or not self.unless.holds(talk)

    def _of_calls(self, outputs: Sequence[ToolOutput]) -> Iterator[bool]:
        kinds = {output.error.kind for output in outputs if output.is_error and output.error}
        facts = (
            (self.denied, "permission_denied" in kinds),
            (self.failed, any(output.is_error for output in outputs)),
            (self.interrupted, "interrupted" in kinds),
        )
        return (bool(outputs) and wanted == found for wanted, found in facts if wanted is not None)


@frozen
class Choice:
    """An argument that depends on ``when``."""

    when: When
    then: Any
    otherwise: Any


def resolve_choices(value: Any, talk: ScriptTalk) -> Any:
    """Return ``value`` with each choice in it replaced by the chosen side."""
    match value:
        case Choice(when=when, then=then, otherwise=otherwise):
            return resolve_choices(then if when.holds(talk) else otherwise, talk)
        case Mapping():
            return {key: resolve_choices(item, talk) for key, item in cast("Mapping[str, Any]", value).items()}
        case list():
            return [resolve_choices(item, talk) for item in cast("list[Any]", value)]
        case _:
            return value


def _outputs(messages: Sequence[Message]) -> Iterator[ToolOutput]:
    return (block for message in messages for block in message.blocks if isinstance(block, ToolOutput))


MODEL = ModelInfo("scripted", "scripted", "scripted", family="scripted", known=True, vision=True, thinking=True)
PIECE = regex(r"\s*\S{1,12}|\s+")
ERRORS: Mapping[str, type[ProviderError]] = {
    kind.kind: kind
    for kind in (ServerOverloaded, RateLimited, ConnectionLost, AuthFailed, ModelNotFound, BadRequest, ContextOverflow)
}


@frozen
class ScriptedCall:
    """A call of the script; without an ``id`` it gets one from its place."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""


@frozen
class ScriptFailure:
    """A request that fails, immediately or ``after`` so many pieces of the step's text."""

    kind: str
    message: str = "The script says so."
    retry_after: float | None = None
    after: int = 0

    def error(self) -> ProviderError:
        kind = ERRORS[self.kind]
        if issubclass(kind, TransientError):
            return kind(self.message, retry_after=self.retry_after)
        return kind(self.message)


@frozen
class Step:
    """One answer of the model, or one failure of it."""

    say: str = ""
    think: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: Usage | None = None
    stop: StopReason | None = None
    error: ScriptFailure | None = None
    when: When | None = None
    delay: float | None = None
    next: str = ""
    stays: bool = False
    again: bool = True
    before: int = 0
    """How many alternatives come directly before it."""
    behind: int = 0
    """How many alternatives come directly after it."""

    def message(self, model: str, place: str, talk: ScriptTalk) -> Message:
        """Return the whole answer; ``place`` makes the ids of its calls."""
        blocks: list[Block] = []
        if self.think:
            blocks.append(Thinking(self.think))
        if self.say:
            blocks.append(Text(self.say))
        for number, call in enumerate(self.calls):
            # A copy by JSON: the script stays unchanged, whatever happens to the message.
            args = json.loads(json.dumps(resolve_choices(dict(call.args), talk)))
            blocks.append(ToolUse(call.id or f"call_{place}_{number}", call.tool, args))
        stop = self.stop or ("tool_use" if self.calls else "end_turn")
        return Message("assistant", tuple(blocks), usage=self.usage, stop=stop, model=model, origin="assistant")


@frozen
class ModelScript:
    steps: tuple[Step, ...]
    last: Step | None = None
    delay: float = 0.0


class ScriptedProvider:
    """Answers each request with the next step. A resumed conversation continues at its place in the script."""

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
        """The step whose answer is being sent or was stopped, if it is to be repeated."""
        self._asked = 0

    @property
    def model(self) -> ModelInfo:
        return self._model

    def connect(self) -> None:
        """Do nothing: a script has no connection."""

    async def close(self) -> None:
        """Do nothing: a script has no connection."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        talk = ScriptTalk(request.messages)
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

    def _next(self, talk: ScriptTalk) -> tuple[int, Step]:
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
        """Return the next step after the answers in ``messages``; steps with errors leave no trace there."""
        steps, cursor = self._script.steps, 0
        for number, message in enumerate(messages):
            if message.role == "assistant" and message.model == self._model.id:
                talk = ScriptTalk(messages[:number])
                cursor = _seek(steps, cursor, talk)
                while cursor < len(steps) and steps[cursor].error is not None:
                    cursor = _seek(steps, cursor + 1, talk)
                cursor = _behind(cursor, steps[cursor]) if cursor < len(steps) else cursor
        return cursor


def _behind(index: int, step: Step) -> int:
    """Return the step after ``step``."""
    return index - step.before if step.stays else index + 1 + step.behind


def _seek(steps: Sequence[Step], start: int, talk: ScriptTalk) -> int:
    return next(
        (index for index in range(start, len(steps)) if (when := steps[index].when) is None or when.holds(talk)),
        len(steps),
    )


def _chunks(message: Message) -> Iterator[ReplyChunk]:
    """Return the deltas of ``message``, in pieces of about a word."""
    for block in message.blocks:
        match block:
            case Thinking(thinking=text):
                yield from map(ThinkingDelta, PIECE.findall(text))
            case Text(text=text):
                yield from map(TextDelta, PIECE.findall(text))
            case ToolUse():
                yield ToolInputDelta(block.id, block.name, len(json.dumps(block.input)))
            case _:
                pass


CHOICE = {"if", "then", "else"}


def read_script(path: Path) -> ModelScript:
    """Read a script from a YAML file. Raises UsageError naming file, line and expectation."""
    top = read_yaml(path) or YamlNode(SettingsDocument(path), (), {})
    found = top.values({"steps": _steps, "last": _step, "delay": YamlNode.number})
    if "steps" not in found:
        raise top.wrong("a mapping with “steps”")
    return ModelScript(**found)


def _steps(node: YamlNode) -> tuple[Step, ...]:
    return tuple(step for each in node.sequence() for step in _alternatives(each))


def _alternatives(node: YamlNode) -> Iterator[Step]:
    nodes = node.sequence() if isinstance(node.value, list) else [node]
    for number, one in enumerate(nodes):
        yield replace(_step(one), before=number, behind=len(nodes) - number - 1)


def _step(node: YamlNode) -> Step:
    found = node.values(_STEP)
    if not {"say", "think", "calls", "error"} & found.keys():
        raise node.wrong("a step with “say”, “think”, “calls” or “error”")
    return Step(**found)


def _stop(node: YamlNode) -> StopReason | None:
    if node.value is not None and node.value not in get_args(StopReason):
        raise node.wrong(f"one of {', '.join(get_args(StopReason))}")
    return node.value


def _calls(node: YamlNode) -> tuple[ScriptedCall, ...]:
    return tuple(map(_call, node.sequence()))


def _call(node: YamlNode) -> ScriptedCall:
    found = node.values({"tool": YamlNode.text, "args": _arguments, "id": YamlNode.text})
    if "tool" not in found:
        raise node.wrong("a call with “tool” and “args”")
    return ScriptedCall(**found)


def _arguments(node: YamlNode) -> dict[str, Any]:
    return {key: _argument(value) for key, value in node.mapping().items()}


def _argument(node: YamlNode) -> Any:
    if isinstance(node.value, dict):
        found = node.mapping()
        if found.keys() == CHOICE:
            return Choice(_when(found["if"]), _argument(found["then"]), _argument(found["else"]))
        return _arguments(node)
    if isinstance(node.value, list):
        return [_argument(item) for item in node.sequence()]
    try:
        json.dumps(node.value)
    except (TypeError, ValueError):
        raise node.wrong("a plain value: a text, a number, a list, a mapping (put dates in quotes)") from None
    return node.value


def _usage(node: YamlNode) -> Usage:
    return Usage(**node.values(dict.fromkeys(("input", "output", "cache_read", "cache_write"), YamlNode.whole)))


def _failure(node: YamlNode) -> ScriptFailure:
    readers = {"kind": _kind, "message": YamlNode.text, "retry_after": YamlNode.number, "after": YamlNode.whole}
    found = node.values(readers)
    if "kind" not in found:
        raise node.wrong("an error with “kind”")
    return ScriptFailure(**found)


def _kind(node: YamlNode) -> str:
    if node.text() not in ERRORS:
        raise node.wrong(f"one of {', '.join(ERRORS)}")
    return node.text()


def _when(node: YamlNode) -> When:
    found = node.values(_WHEN)
    return When(**{"unless" if key == "not" else key: value for key, value in found.items()})


def _ids(node: YamlNode) -> tuple[str, ...]:
    return tuple(item.text() for item in node.sequence())


_WHEN: Mapping[str, Callable[[YamlNode], Any]] = {
    **dict.fromkeys(("denied", "failed", "interrupted", "compacted"), YamlNode.flag),
    "done": _ids,
    "said": YamlNode.text,
    "result": YamlNode.text,
    "not": _when,
}
_STEP: Mapping[str, Callable[[YamlNode], Any]] = {
    "say": YamlNode.text,
    "think": YamlNode.text,
    "calls": _calls,
    "usage": _usage,
    "stop": _stop,
    "error": _failure,
    "when": _when,
    "delay": YamlNode.number,
    "next": YamlNode.text,
    "stays": YamlNode.flag,
    "again": YamlNode.flag,
}
