"""Around all guards but secrets: whatever comes of a call becomes a clean, bounded result; what is long goes to a file.

How text is shortened is formats.py; where files lie and how they are read is the sessions room's business.
"""

from __future__ import annotations

import asyncio
import logging
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast, get_args

from ba_tui.core.errors import BaError, ErrorInfo, NoThread, StopTurn, StorageError, no_thread
from ba_tui.core.messages import Document, Image, clean_text
from ba_tui.core.results import (
    UNREAD,
    Artifact,
    CommandText,
    Display,
    Kind,
    OutputLevel,
    Prose,
    Source,
    StateChange,
    ToolResult,
    failure,
    failure_text,
    identified,
)
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.fragments import has_long_secrets, without_fragments
from ba_tui.permissions.secrets.sharing import Secrecy, cut_secrets
from ba_tui.processes.terminal_text import lines_cut, unescaped
from ba_tui.sessions.results.artifacts import REFERENCE, Artifacts
from ba_tui.tools.failed import Failed, failed_result
from ba_tui.tools.formats import BRIEF_FACTS, ROOM, failed, head_and_tail, shortened

log = logging.getLogger(__name__)
LIMIT = ROOM["standard"]
SUMMARY = 100
DEEPEST = 50
FULL_WINDOW = 0.7
"""The share of the model's window beyond which tools with long results are brief, unless asked otherwise."""
BULKY_DISPLAY = 64_000
SHOWN_DISPLAY = 32_000
SLOW = 256_000
"""Characters beyond which text is cut first and made clean then."""
MESSAGE = 300
LEVEL = "output_level"
LEVELS: tuple[OutputLevel, ...] = get_args(OutputLevel)
KINDS = frozenset(get_args(Kind))
DISPLAYS: tuple[type, ...] = get_args(get_args(Display)[0])
CHOICE = {"enum": list(LEVELS), "description": "How much of a long result to give; default standard"}


@frozen
class Delivery:
    """``artifacts``: where the whole goes when a part is given; ``fullness`` of the model's window, from 0 to 1;
    ``secrecy``: whether secrets are kept from models."""

    artifacts: Artifacts | None = None
    fullness: Callable[[], float] = float
    secrecy: Secrecy = "allow"


NOWHERE = Delivery()


def output(tool: Tool, delivery: Delivery = NOWHERE) -> Tool:
    schema = with_level(tool.input_schema) if tool.facts.bulky else tool.input_schema
    chosen = schema is not tool.input_schema

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        level: OutputLevel = "standard"
        try:
            level = effective_level(tool, args if chosen else {}, delivery)
            inner = {name: value for name, value in args.items() if name != LEVEL} if chosen else args
            result: object = await tool.run(inner, call)
            if isinstance(result, ToolResult):
                return await _Handing(delivery, level, call.id, tool).over(result)
            failing = failure("internal_error", f"{tool.name} returned {type(result).__name__}, not a result.")
        except (StopTurn, NoThread, GeneratorExit):
            raise
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            failing = failure("internal_error", f"{tool.name} gave up: it cancelled itself.")
        except BaError as error:
            failing = failed_result(error)
        except BaseException as error:
            if refused := no_thread(error):
                raise refused from error
            log.warning("%s failed\n%s", tool.name, clean_text(traceback.format_exc()))
            failing = failure("internal_error", f"{tool.name} failed: {_words(error)}")
        return await _Handing(delivery, level, call.id, tool).over(failing)

    return replace(tool, run=run, input_schema=schema)


def _words(error: BaseException) -> str:
    """What went wrong, also when the error itself can't say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - a tool's failure becomes a result
        return type(error).__name__


def with_level(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema`` with the choice of a level; the same when the tool has a parameter of that name itself."""
    properties = schema.get("properties", {})
    return schema if LEVEL in properties else {**schema, "properties": {**properties, LEVEL: CHOICE}}


def effective_level(tool: Tool, args: Mapping[str, Any], delivery: Delivery) -> OutputLevel:
    """What the call says, else what the tool's facts say, which a full window makes brief for bulky tools.

    Raises:
        Failed: the call names no level.
    """
    if LEVEL in args:
        if args[LEVEL] not in LEVELS:
            got = str(args[LEVEL])[:100]
            raise Failed("invalid_parameters", f"{LEVEL}: expected one of {', '.join(LEVELS)}, got {got!r}.")
        return args[LEVEL]
    return "brief" if tool.facts.bulky and delivery.fullness() > FULL_WINDOW else tool.facts.level


@frozen
class _Handing:
    """One result on its way out."""

    delivery: Delivery
    level: OutputLevel
    call_id: str
    tool: Tool

    async def over(self, result: ToolResult) -> ToolResult:
        result = _worded(_checked(result), self.call_id)
        if len(result.text) <= ROOM[self.level] and len(_display_text(result)) <= BULKY_DISPLAY:
            return _cleaned(result, self._shown(result, result.artifact))
        # A file is written, or a lot is to be read: not on the loop.
        return await asyncio.to_thread(self._parted, result)

    def _parted(self, result: ToolResult) -> ToolResult:
        """Head, tail and a reference in place of what is too long."""
        stored, trouble = self._kept(result)
        ref = result.artifact or (stored.ref if stored else None)
        if stored and self.level == "full" and not result.is_error and len(result.text) > ROOM["full"]:
            how = f"{_whole(stored.ref)}, by offset and limit, or search"
            text = f"The result is too long to be given here. It is {stored.summary}.\n[{how}]"
        else:
            text = self._shown(result, ref, trouble)
        display = _shorter_display(result) if ref else result.display
        kinds: tuple[str, ...] = ()
        if self.delivery.secrecy != "allow" and (len(result.text) <= SLOW or has_long_secrets(result.text)):
            # What head and tail hold of a secret does not look like one to whoever sees only them.
            text, kinds = without_fragments(text, unescaped(result.text))
        meta = {**result.meta, **_unread(result.text, text), **cut_secrets(kinds)}
        return _cleaned(replace(result, display=display, artifact=ref, meta=meta), text)

    def _kept(self, result: ToolResult) -> tuple[Artifact | None, str]:
        """The whole in a file, or words on why it is not."""
        if result.artifact or self.delivery.artifacts is None:
            return None, ""
        shown = _display_text(result)
        theirs = len(shown) > BULKY_DISPLAY and len(shown) > len(result.text)
        data, kind = (shown, "text") if theirs else (result.text, result.kind)
        try:
            stored = self.delivery.artifacts.store(data, kind=kind, call_id=self.call_id, tool=self.tool.name)
        except StorageError as error:
            log.warning("%s", error)
            return None, f"; {clean_text(str(error)).rstrip('.')[:300]}"
        return stored, ""

    def _shown(self, result: ToolResult, ref: str | None, trouble: str = "") -> str:
        """The text as the level wants it, with a word of where the whole is, or why it is nowhere."""
        text = self._readable(result.text)
        rest = f"; {_whole(ref)}" if ref else trouble
        if result.is_error:
            wording = self._readable(failure_text(result.error, self.call_id)) if result.error else text
            told = failed(text, self.level, rest, wording)
        else:
            told = self._own(text) or shortened(text, result.kind, self.level, rest)
        return f"{told}\n[{_whole(ref)}]" if ref and ref not in told else told

    def _readable(self, text: str) -> str:
        """``text`` without what no model can read; as it is where that would take long."""
        return clean_text(unescaped(text)) if len(text) <= SLOW else text

    def _own(self, text: str) -> str:
        """What the tool's own way makes of a text that is too long; empty where it has none, or a broken one."""
        room = ROOM[self.level]
        if self.tool.shorten is None or len(text) <= room:
            return ""
        try:
            return head_and_tail(str(self.tool.shorten(text, self.level, room)), max(room, BRIEF_FACTS))
        except Exception:  # noqa: BLE001 - a tool's failure must not cost its result
            log.warning("%s can't shorten its result\n%s", self.tool.name, clean_text(traceback.format_exc()))
            return ""


def _unread(whole: str, told: str) -> dict[str, int]:
    """What ``meta`` says of the lines of ``whole`` that are not in ``told``."""
    return {} if len(told) >= len(whole) else {UNREAD: lines_cut(told)}


def _whole(ref: str) -> str:
    return f"whole: read_artifact {ref}"


def _checked(result: ToolResult) -> ToolResult:
    """``result`` with nothing in it of a type that does not belong there."""
    ref = result.artifact
    return _with(
        result,
        text=str(result.text),
        display=result.display if isinstance(result.display, DISPLAYS) else None,
        changes=result.changes if isinstance(result.changes, StateChange) else None,
        error=result.error if isinstance(result.error, ErrorInfo) else None,
        attachments=tuple([item for item in result.attachments if isinstance(item, Image | Document)]),
        artifact=ref if isinstance(ref, str) and REFERENCE.fullmatch(ref) else None,
        kind=result.kind if result.kind in KINDS else "text",
    )


def _with(value: Any, /, **wanted: Any) -> Any:
    """``value`` with these fields; itself where they are what it has, as nearly every result does."""
    for name, item in wanted.items():
        if getattr(value, name) is not item:
            return replace(value, **wanted)
    return value


def _worded(result: ToolResult, call_id: str) -> ToolResult:
    """A failure in the one standard text, with its code and the call's id."""
    if not result.is_error:
        return result
    if result.error and failure_text(replace(result.error, code="")) in result.text:
        return identified(result, call_id)
    whole = ErrorInfo("execution_error", result.text.strip() or "The tool gave no reason.")
    info = replace(whole, message=" ".join(result.text[:MESSAGE].split()))
    return replace(result, text=failure_text(whole, call_id), error=result.error or info)


def _display_text(result: ToolResult) -> str:
    match result.display:
        case CommandText(output=text) | Source(text=text) | Prose(text=text):
            return str(text)
        case _:
            return ""


def _shorter_display(result: ToolResult) -> Any:
    """The display with head and tail of a bulky text; the pane has the rest from the file."""
    text = _display_text(result)
    if len(text) <= BULKY_DISPLAY:
        return result.display
    match result.display:
        case CommandText() as command:
            lines = command.lines or text.count("\n")
            return replace(command, output=head_and_tail(text, SHOWN_DISPLAY), lines=lines)
        case Prose() as prose:
            return replace(prose, text=head_and_tail(text, SHOWN_DISPLAY))
        case Source() as source:
            # Its lines are numbered: only the beginning keeps its numbers.
            return replace(source, text=text[: text.rfind("\n", 0, SHOWN_DISPLAY) + 1 or SHOWN_DISPLAY])
        case other:
            return other


def _cleaned(result: ToolResult, text: str) -> ToolResult:
    """``result`` with ``text``, which survives a model, a journal and a terminal then, as all of it does."""
    summary = " ".join(unescaped(str(result.summary)).split())[:SUMMARY]
    return cast("ToolResult", _clean(_with(result, text=unescaped(text), summary=summary), 0))


def _clean(value: Any, depth: int) -> Any:
    """The same value with every string in it clean, and nothing in it that is no JSON."""
    if depth > DEEPEST:
        return "…"
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean_text(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case tuple():
            return tuple(_clean(item, depth + 1) for item in cast("tuple[Any, ...]", value))
        case list():
            return [_clean(item, depth + 1) for item in cast("list[Any]", value)]
        case dict():
            given = cast("dict[Any, Any]", value)
            return {clean_text(str(key)): _clean(item, depth + 1) for key, item in given.items()} or given
        case _ if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value)]
            return _with(value, **{name: _clean(getattr(value, name), depth + 1) for name in names})
        case _:
            return clean_text(str(value))
