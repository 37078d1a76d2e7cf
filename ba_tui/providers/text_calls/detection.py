"""Detects models that write tool calls as text, and saves which form each of them writes.

Every start imports this module, so it loads the parsers with the first reply that needs them.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import logging
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import BadRequest, ContextOverflow, ModelNotFound, ProviderError, ServerOverloaded, StorageError
from ba_tui.core.events import Notice, TextDelta
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelRequest, Provider, ProviderStage, ReplyChunk, ToolCalling, answer_of
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.providers.shapes import arguments, fields, items, text_of
from ba_tui.resources import exclusive, read_regular, save_whole

if TYPE_CHECKING:
    from ba_tui.providers.text_calls.known_tools import RequestTools
    from ba_tui.providers.text_calls.prompts import Form
    from ba_tui.providers.text_calls.replies import ParsedReply, Stance
    from ba_tui.providers.text_calls.text_tools import StreamedReply


log = logging.getLogger(__name__)
REFUSED = "its server refused tools"
WRITTEN = "it wrote a call as text"
_TOOLS = regex(r"(?i)\btools?\b(?![.\[]\d)|\btool[ _-]?(?:use|choice|call)|\bfunction[ _-]?call")
_UNSUPPORTED = regex(
    r"(?i)n[o']t (?:currently |yet )?(?:support|enabled|available|permitted|allowed)|unsupported|no endpoints found"
    r"|requires? --|unrecognized|unknown (?:field|param|name|argument)|unexpected|extra (?:inputs|fields)|cannot use"
)
_ONE_TOOL = regex(r"\btools[.\[]\d")
_HINTS = regex(r"[<\[{`~(]|(?i:act|tool|func)")
"""No call can begin without one of these."""
_MARKS = regex(r"<|\[TOOL|functools")
LONGEST_HINT = 10
"""Characters of a hint that may arrive in pieces."""
KEEP = "For native calls set providers.NAME.tools: native."


class CallDetector(ProviderStage):
    """Uses the vendor's tool API until a reply or an error shows that the model writes its calls, and saves that in
    ``formats``. From then on requests go through TextTools."""

    def __init__(self, provider: Provider, formats: Formats) -> None:
        super().__init__(provider)
        self._formats = formats
        self._text: Provider | None = None
        """The provider that is used once the model is known to write its calls."""
        self._proven = False
        """Whether the model has called a tool by the vendor's API."""
        self._known: tuple[Sequence[Tool], RequestTools] | None = None
        self._saving: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await asyncio.gather(*self._saving)
        await super().close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        if self._text is None and not self._proven and (learnt := self._formats.of(self.model.id)):
            self._write(learnt.form)
        if self._text is None:
            shown = False
            try:
                async with contextlib.aclosing(self._asked(request)) as chunks:
                    async for chunk in chunks:
                        shown = True
                        yield chunk
                        if isinstance(chunk, Message):
                            return
                return
            except ProviderError as error:
                if shown or self._proven or not request.tools or not refuses_tools(error):
                    raise
                yield self._learn("text", REFUSED)
        async with answer_of(cast("Provider", self._text), request) as chunks:
            async for chunk in chunks:
                yield chunk
                if isinstance(chunk, Message):
                    return

    async def _asked(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Return the answer to a request with tools; a call that it has as text becomes a real one."""
        hearing: StreamedReply | None = None
        hints = _MARKS if self._proven else _HINTS
        before = ""
        listening = bool(request.tools) and request.call_tools
        async with self._answer(request) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextDelta(text=text) if listening and (hearing or hints.search(before[-LONGEST_HINT:] + text)):
                        hearing = hearing or self._hearing(request, before)
                        for each in hearing.delta(text):
                            yield each
                        if found := await hearing.stopped():
                            for each in self._repaired(hearing, found, None):
                                yield each
                            return
                    case Message() if chunk.calls:
                        self._proven = True
                        yield chunk
                        return
                    case Message() if hearing or (listening and hints.search(chunk.text)):
                        hearing = hearing or self._hearing(request, before)
                        found = await hearing.read(chunk)
                        if found.calls:
                            for each in self._repaired(hearing, found, chunk):
                                yield each
                            return
                        for each in hearing.rest():
                            yield each
                        yield chunk
                        return
                    case _:
                        before += chunk.text if isinstance(chunk, TextDelta) else ""
                        yield chunk

    def _hearing(self, request: ModelRequest, before: str) -> StreamedReply:
        from ba_tui.providers.text_calls.known_tools import RequestTools  # noqa: PLC0415
        from ba_tui.providers.text_calls.text_tools import StreamedReply  # noqa: PLC0415 - most models never need it

        if self._known is None or self._known[0] is not request.tools:
            self._known = (request.tools, RequestTools(request.tools))
        stance: Stance = "trusting" if self._proven else "watching"
        return StreamedReply(self._known[1], stance, self.model, before=before)

    def _repaired(self, hearing: StreamedReply, found: ParsedReply, message: Message | None) -> Iterator[ReplyChunk]:
        if not self._proven:
            # A model that writes tags was trained on them; otherwise the form that most models follow is used.
            yield self._learn("tags" if hearing.tagged else "text", WRITTEN)
        yield from hearing.ending(found, message)

    def _learn(self, form: str, why: str) -> Notice:
        """Ask the model to write its calls from the next request on; return the notice for the user."""

        chosen = self._write(form)
        log.info("%s is asked for calls as text (%s): %s", self.model.id, chosen, why)
        saving = asyncio.create_task(asyncio.to_thread(self._formats.learn, self.model.id, Learnt(chosen, why)))
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)
        return Notice(f"{self.model.id} is asked to write its tool calls as text from now on: {why}.", hint=KEEP)

    def _write(self, form: str) -> Form:
        from ba_tui.providers.text_calls.prompts import as_form  # noqa: PLC0415 - most models never need it
        from ba_tui.providers.text_calls.text_tools import TextTools  # noqa: PLC0415

        chosen = as_form(form, self.model)
        self._text = TextTools(self._provider, chosen)
        return chosen


def refuses_tools(error: ProviderError) -> bool:
    """Whether the server says that it, or the model, does not support tools."""
    if isinstance(error, ContextOverflow) or not isinstance(error, BadRequest | ModelNotFound | ServerOverloaded):
        return False
    said = str(error)
    return bool(_TOOLS.search(said) and _UNSUPPORTED.search(said)) and not _ONE_TOOL.search(said)


LARGEST = 262_144
MODELS = 500


@frozen
class Learnt:
    """The form in which a model writes its calls; ``why``: how that was found out, in a few words."""

    form: ToolCalling
    why: str


class Formats:
    """The models that write calls as text, with their forms, in a small file. A missing or damaged file counts as
    empty.

    It is read at the first use. ``learn`` writes to disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = 0
        """Grows with each model that is learnt."""
        self._lock = threading.Lock()
        self._models: dict[str, Learnt] | None = None

    def of(self, model: str) -> Learnt | None:
        """Return the form of the model with this id; None while it uses the server's tool API."""
        with self._lock:
            if self._models is None:
                self._models = self._read()
            return self._models.get(model)

    def learn(self, model: str, learnt: Learnt) -> None:
        """Use and save the form. If it can't be saved, it is used until the process ends."""
        self.of(model)
        with self._lock:
            now = self._models = {**(self._models or {}), model: learnt}
            self.version += 1
        with suppress(StorageError), exclusive(self.path.parent):
            # Another process may have saved something meanwhile.
            kept = list({**self._read(), **now}.items())[-MODELS:]
            lines = {id: {"form": each.form, "why": each.why} for id, each in kept}
            save_whole(self.path, json.dumps(lines, ensure_ascii=False, indent=1) + "\n", mode=0o600)

    def _read(self) -> dict[str, Learnt]:
        found: dict[str, Learnt] = {}
        try:
            read: object = json.loads(read_regular(self.path, LARGEST))
        except (FileNotFoundError, NotADirectoryError):
            return found
        except (OSError, ValueError, RecursionError) as error:
            log.warning("%s can't be read: %s", self.path.name, error)
            return found
        for id, raw in fields(read).items():
            if (form := text_of(fields(raw).get("form"))) in get_args(ToolCalling):
                found[id] = Learnt(cast("ToolCalling", form), text_of(fields(raw).get("why")))
        return found


# A call that a model wrote as text and that no parser took is reported, instead of ending the turn silently. It is
# never run. Only a call at the end of an answer is one: within an explanation it is an example.

LONGEST = 60_000
"""Characters at the end of an answer that are searched."""
STARTS = 40
"""Possible starts of a JSON value that are tried, from the last one."""
NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "action_input", "tool_input", "kwargs")
_TAIL = regex(r"(?:\s|`{3,}|</?[a-z_:|]+>|<\|[a-z_|]+\|>|[\]}])*\Z", re.IGNORECASE)
"""Text that models write after a call: the end of a fence, closing tags, special tokens, a bracket too many."""
_START = regex(r"[\[{]")
_BEFORE = regex(
    r"(?:<function=|<invoke name=\"|<tool name=\"|>>>|\[TOOL_CALLS\]|functions\.|Action:\s*)([\w.-]{1,64})"
    r"(?:\s|<\|\w+\|>|[\">:`]|\[ARGS\]|Action Input|json|\d)*\Z"
)
_TAGGED = regex(
    r"<(?:function=|invoke name=\"|tool name=\")([\w.-]{1,64})\"?>((?:(?!<function=|<invoke ).)*>)\Z", re.DOTALL
)
_PARAMETER = regex(r"<parameter(?:=| name=\")([\w.-]{1,64})\"?>")
_CODE = regex(
    r"(?:\A(?:```(?:tool_code|python)?\s*\n)?|```tool_code\s*\n|<\|python_tag\|>|<tool_code>)\s*\[?\s*"
    r"((?:print\()?[A-Za-z_]\w{0,63}\()"
)
_CODE_END = regex(r"```|</|<\|")
HINT = "Choose a model or a server template with tool calling (llama.cpp: start it with --jinja)."
AGAIN = "Say “go on” to let it try again."


def call_in_text(text: str, tools: Sequence[Tool]) -> str:
    """Return the name of the tool whose call is at the end of ``text``; empty without one.

    It must be one of ``tools`` and the arguments must fit roughly: all required ones, and at most as many unknown as
    known.
    """
    tail = text[-LONGEST:].rstrip()
    schemas = {tool.name: tool.input_schema for tool in tools if tool.name in tail}
    if not schemas:
        return ""
    calls = (*_json_calls(tail, schemas), *_tagged_calls(tail), *_code_calls(tail))
    return next((name for name, args in calls if name in schemas and _fits(args, schemas[name])), "")


def _json_calls(tail: str, names: Collection[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    decode = json.JSONDecoder(strict=False).raw_decode
    starts = [match.start() for match in _START.finditer(tail)]
    for start in reversed(starts[-STARTS:]):
        # Small models often leave out the last brace.
        whole = tail[start:] + "}"
        try:
            value, end = decode(whole)
        except (ValueError, RecursionError):
            continue
        if not _TAIL.match(whole, end):
            continue
        if before := _BEFORE.search(tail[max(0, start - 120) : start]):
            yield before[1], fields(value)
        for each in map(fields, items(value) or [value]):
            yield from _named(each, names)


def _named(value: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Parse the call of an object, in one of the shapes that models were trained on."""
    inner = fields(value.get("function")) or fields(value.get("function_call")) or fields(value.get("tool_call"))
    found = inner or value
    key = next((key for key in NAMES if text_of(found.get(key)).removeprefix("functions.") in names), "")
    if key:
        rest = {other: found[other] for other in found.keys() - {key, "type", "id"}}
        given = next((found[other] for other in ARGUMENTS if other in found), rest)
        yield found[key].removeprefix("functions."), arguments(given)[0]
    elif len(value) == 1 and (name := next(iter(value))) in names:
        yield name, fields(value[name])


def _tagged_calls(tail: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Parse ``<function=NAME><parameter=KEY>value</parameter></function>``, and the same with ``invoke name``."""
    if found := _TAGGED.search(tail):
        yield found[1], dict.fromkeys(_PARAMETER.findall(found[2]), "")


def _code_calls(tail: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Parse ``[NAME(key=value)]`` as the whole answer, or as a block of code at its end."""
    for found in _CODE.finditer(tail):
        code = _CODE_END.split(tail[found.start(1) :], maxsplit=1)[0].strip().removesuffix("]")
        if not _TAIL.match(tail, found.start(1) + len(code)):
            continue
        try:
            value = ast.parse(code, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print" and value.args:
            value = value.args[0]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args:
            yield value.func.id, {keyword.arg: "" for keyword in value.keywords if keyword.arg}


def _fits(args: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    known = fields(schema.get("properties")).keys()
    strangers = len(args.keys() - known)
    return set(items(schema.get("required"))) <= args.keys() and strangers <= len(args) - strangers


class WrittenCallWarning(Interceptor):
    """Warns the user when the model wrote a tool call as text, which ends the turn."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools

    async def after(self, reply: Message, branch: Branch) -> None:
        if not (name := call_in_text(reply.text, self._tools())):
            return
        # A model that has called tools before can do so: this call was a mistake.
        able = any(message.calls and message.model == reply.model for message in branch.transcript.messages)
        what = f"The model wrote a call of {name} as text instead of making it, so nothing was run."
        branch.emit(Notice(what, "warning", AGAIN if able else HINT))
