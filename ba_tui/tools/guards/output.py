"""The guards for results: ``output`` makes every result clean and bounded, and stores long ones in files; ``secrets``
removes secrets that the user does not share with the model.

``secrets`` also finds secrets in pieces or encoded. The user's display keeps the full result.
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
from ba_tui.core.events import Notice
from ba_tui.core.messages import Document, Image, clean_json, clean_text
from ba_tui.core.questions import Question
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
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.scanner import (
    Secret,
    has_long_secrets,
    placeholders,
    redact,
    without,
    without_fragments,
)
from ba_tui.permissions.secrets.sharing import Secrecy, SecretSharing, cut_secrets, kinds_cut, kinds_of
from ba_tui.processes.terminal_text import lines_cut, unescaped
from ba_tui.sessions.artifacts import REFERENCE, Artifacts
from ba_tui.tools.definitions import LEVEL, LEVELS, with_level
from ba_tui.tools.failures import ToolFailure, failed_result
from ba_tui.tools.formats import BRIEF_FACTS, ROOM, failed, head_and_tail, shortened

log = logging.getLogger(__name__)
SUMMARY = 100
DEEPEST = 50
FULL_WINDOW = 0.7
"""Fill level of the model's window above which tools with long results are brief by default."""
BULKY_DISPLAY = 64_000
SHOWN_DISPLAY = 32_000
SLOW = 256_000
"""Characters above which text is cut before it is cleaned."""
MESSAGE = 300
KINDS = frozenset(get_args(Kind))
DISPLAYS: tuple[type, ...] = get_args(get_args(Display)[0])


@frozen
class OutputDelivery:
    """``artifacts``: the store for whole results; ``fullness`` of the model's window, from 0 to 1; ``secrecy``:
    whether secrets are hidden from models."""

    artifacts: Artifacts | None = None
    fullness: Callable[[], float] = float
    secrecy: Secrecy = "allow"


NOWHERE = OutputDelivery()


def output(tool: Tool, delivery: OutputDelivery = NOWHERE) -> Tool:
    schema = with_level(tool.input_schema) if tool.facts.bulky else tool.input_schema
    chosen = schema is not tool.input_schema

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        level: OutputLevel = "standard"
        try:
            level = effective_level(tool, args if chosen else {}, delivery)
            inner = {name: value for name, value in args.items() if name != LEVEL} if chosen else args
            result: object = await tool.run(inner, call)
            if isinstance(result, ToolResult):
                return await _ResultHandover(delivery, level, call.id, tool).over(result)
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
        return await _ResultHandover(delivery, level, call.id, tool).over(failing)

    return replace(tool, run=run, input_schema=schema)


def _words(error: BaseException) -> str:
    """Describe an error, even if its own text can't be computed."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - a tool's failure becomes a result
        return type(error).__name__


def effective_level(tool: Tool, args: Mapping[str, Any], delivery: OutputDelivery) -> OutputLevel:
    """Return the level of a call, else that of the tool; with a full window bulky tools are brief.

    Raises:
        ToolFailure: the call names no level.
    """
    if LEVEL in args:
        if args[LEVEL] not in LEVELS:
            got = str(args[LEVEL])[:100]
            raise ToolFailure("invalid_parameters", f"{LEVEL}: expected one of {', '.join(LEVELS)}, got {got!r}.")
        return args[LEVEL]
    return "brief" if tool.facts.bulky and delivery.fullness() > FULL_WINDOW else tool.facts.level


@frozen
class _ResultHandover:
    """Completes the result of one call."""

    delivery: OutputDelivery
    level: OutputLevel
    call_id: str
    tool: Tool

    async def over(self, result: ToolResult) -> ToolResult:
        result = _worded(_checked(result), self.call_id)
        if len(result.text) <= ROOM[self.level] and len(_display_text(result)) <= BULKY_DISPLAY:
            return _cleaned(result, self._shown(result, result.artifact))
        # Writing a file or reading long text would block the event loop.
        return await asyncio.to_thread(self._parted, result)

    def _parted(self, result: ToolResult) -> ToolResult:
        """Replace too long text with its head, its tail and a reference."""
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
            # Parts of a secret in head and tail can't be recognized alone.
            text, kinds = without_fragments(text, unescaped(result.text))
        meta = {**result.meta, **_unread(result.text, text), **cut_secrets(kinds)}
        return _cleaned(replace(result, display=display, artifact=ref, meta=meta), text)

    def _kept(self, result: ToolResult) -> tuple[Artifact | None, str]:
        """Store the whole result; return it, or a note on why it is not stored."""
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
        """Return the text for the level, with a note on where the whole is stored, or why it is not."""
        text = self._readable(result.text)
        rest = f"; {_whole(ref)}" if ref else trouble
        if result.is_error:
            wording = self._readable(failure_text(result.error, self.call_id)) if result.error else text
            told = failed(text, self.level, rest, wording)
        else:
            told = self._own(text) or shortened(text, result.kind, self.level, rest)
        return f"{told}\n[{_whole(ref)}]" if ref and ref not in told else told

    def _readable(self, text: str) -> str:
        """Return ``text`` without unreadable characters; unchanged if very long."""
        return clean_text(unescaped(text)) if len(text) <= SLOW else text

    def _own(self, text: str) -> str:
        """Shorten a long text by the tool's own function; return an empty text if it has none, or it fails."""
        room = ROOM[self.level]
        if self.tool.shorten is None or len(text) <= room:
            return ""
        try:
            return head_and_tail(str(self.tool.shorten(text, self.level, room)), max(room, BRIEF_FACTS))
        except Exception:  # noqa: BLE001 - a tool's failure must not cost its result
            log.warning("%s can't shorten its result\n%s", self.tool.name, clean_text(traceback.format_exc()))
            return ""


def _unread(whole: str, told: str) -> dict[str, int]:
    """Return the entry of ``meta`` for the lines of ``whole`` that are missing in ``told``."""
    return {} if len(told) >= len(whole) else {UNREAD: lines_cut(told)}


def _whole(ref: str) -> str:
    return f"whole: read_artifact {ref}"


def _checked(result: ToolResult) -> ToolResult:
    """Return ``result`` with fields of wrong types removed."""
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
    """Return ``value`` with these fields; the same object if nothing changes, as for nearly all results."""
    for name, item in wanted.items():
        if getattr(value, name) is not item:
            return replace(value, **wanted)
    return value


def _worded(result: ToolResult, call_id: str) -> ToolResult:
    """Return a failure in the standard wording, with its code and the call's id."""
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
    """Return the display with head and tail of a long text; the pane reads the rest from the file."""
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
            # Its lines are numbered, so only the beginning is kept.
            return replace(source, text=text[: text.rfind("\n", 0, SHOWN_DISPLAY) + 1 or SHOWN_DISPLAY])
        case other:
            return other


def _cleaned(result: ToolResult, text: str) -> ToolResult:
    """Return ``result`` with ``text``, all of it safe for models, journals and terminals."""
    summary = " ".join(unescaped(str(result.summary)).split())[:SUMMARY]
    return cast("ToolResult", _clean(_with(result, text=unescaped(text), summary=summary), 0))


def _clean(value: Any, depth: int) -> Any:
    """Return the value with all strings cleaned, and only JSON types."""
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


_NAMED = 100
_DEEPEST = 20
_KEPT = "[What reads {mark} here is kept from you by the user's settings. Work with it by name, without its value.]"


def secrets(sharing: SecretSharing) -> Guard:
    """Return the outermost guard: every result for the model passes it."""

    def guard(tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if sharing.secrecy == "allow":
                return await tool.run(args, call)
            if tool.effect is Effect.WRITE and (marks := _marks(args, sharing)):
                message = f"{', '.join(marks)} is a placeholder for a secret; it would replace the secret."
                return failure("validation_error", message, hint="Change only the parts around it.")
            result = await tool.run(args, call)
            found = await sharing.looked(result.text)
            if not found and not kinds_cut(result.meta):
                return result
            return await _kept(sharing, tool, found, result, (args, call))

        def so_far(text: str) -> str:
            reported = tool.so_far(text)
            return reported if sharing.secrecy == "allow" else sharing.search.masked(reported)

        return replace(tool, run=run, so_far=so_far)

    return guard


async def _kept(
    sharing: SecretSharing,
    tool: Tool,
    found: tuple[Secret, ...],
    result: ToolResult,
    of: tuple[Mapping[str, Any], Call],
) -> ToolResult:
    """Return ``result`` without the secrets that the user does not share."""
    args, call = of
    withheld, cut = sharing.withheld(result.text, found), kinds_cut(result.meta)
    said = ""
    if sharing.secrecy == "ask" and sharing.open(result.text, withheld):
        reply = await call.ask(_question(tool, args, call, withheld))
        share = reply.choice not in {"deny", "text"}
        sharing.settle(result.text, withheld, share=share)
        said = "" if share else reply.text.strip()
        withheld = sharing.withheld(result.text, withheld)
    if not withheld and not cut:
        return result
    if sharing.secrecy == "redact" or cut:
        _tell(sharing, tool, args, call, kinds_of(withheld, cut))
    kinds = dict.fromkeys((*(secret.kind for secret in withheld), *cut))
    note = _KEPT.format(mark=" or ".join(f"[secret: {kind}]" for kind in kinds))
    words = f"\nThe user said: {said}" if said else ""
    return replace(result, text=f"{without(result.text, withheld)}\n{note}{words}")


def _question(tool: Tool, args: Mapping[str, Any], call: Call, found: tuple[Secret, ...]) -> Question:
    return Question(
        "permission",
        "Share a secret with the model?",
        call_id=call.id,
        tool=tool.name,
        args=clean_json(dict(args)),
        reason=f"the result holds {kinds_of(found)}; No hides the secret and sends the rest",
        risks=("shares a secret",),
        fixed=True,
    )


def _tell(sharing: SecretSharing, tool: Tool, args: Mapping[str, Any], call: Call, kinds: str) -> None:
    about = paintable(redact(tool.target(args)), newlines=False)[:_NAMED]
    if sharing.news(about, kinds):
        text = f"Kept from the model: {kinds} in the result of {tool.name} {about}".rstrip()
        call.branch.emit(Notice(f"{text}.", "info", "To change this, set `secrets` to ask or allow."))


def _marks(value: Any, sharing: SecretSharing, depth: int = 0) -> tuple[str, ...]:
    """Return the placeholders of secrets in a call's arguments, also those of masked copies."""
    if isinstance(value, str):
        return (*placeholders(value), *sharing.fills(value))
    if depth > _DEEPEST:
        return ()
    if isinstance(value, Mapping):
        items = list(cast("Mapping[str, Any]", value).values())
    elif isinstance(value, list | tuple):
        items = list(cast("list[Any]", value))
    else:
        return ()
    return tuple(dict.fromkeys(mark for item in items for mark in _marks(item, sharing, depth + 1)))
