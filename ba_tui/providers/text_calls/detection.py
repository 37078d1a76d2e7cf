"""Detects models that write tool calls as text, and saves which form each of them writes.

Every start imports this module, so it loads the parsers with the first reply that needs them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
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
from ba_tui.providers.shapes import fields, items, text_of
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
    """Uses the vendor's tool API until a reply or an error shows that the model writes its calls; then TextTools."""

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
        if self._known is None or self._known[0] is not request.tools:
            self._known = (request.tools, _parsers().RequestTools(request.tools))
        stance: Stance = "trusting" if self._proven else "watching"
        return _parsers().StreamedReply(self._known[1], stance, self.model, before=before)

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
        self._text = _parsers().TextTools(self._provider, form)
        return self._text.form


def _parsers():
    """Load the parsers of written calls: most models never need them."""
    from ba_tui.providers.text_calls import text_tools  # noqa: PLC0415

    return text_tools


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
    """The models that write calls as text, with their forms, in a small file, read at the first use. A missing or
    damaged file counts as empty."""

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


# A call that was written as text and not made is reported, instead of ending the turn silently. Only a call at
# the end of an answer is one: within an explanation it is an example.

LONGEST = 60_000
"""Characters at the end of an answer that are searched."""
_TAIL = regex(r"(?:\s|`{3,}|</?[a-z_:|]+>|<\|[a-z_|]+\|>|[\]})])*\Z", re.IGNORECASE)
"""Text that models write after a call: the end of a fence, closing tags, special tokens, a bracket too many."""
HINT = "Choose a model or a server template with tool calling (llama.cpp: start it with --jinja)."
AGAIN = "Say “go on” to let it try again."


def call_in_text(text: str, tools: Sequence[Tool]) -> str:
    """Return the name of the tool whose call is at the end of ``text``; empty without one. Slow: call it in a thread.

    It must be one of ``tools`` and the arguments must fit roughly: all required ones, and at most as many unknown as
    known.
    """
    tail = text[-LONGEST:].rstrip()
    for call in _parsers().read(tail, _parsers().RequestTools(tools), "asked").calls[-1:]:
        schema = next((tool.input_schema for tool in tools if tool.name == call.name), None)
        ended = _TAIL.match(tail, tail.rfind(call.source) + len(call.source))
        if ended and not call.problem and schema is not None and _fits(fields(call.arguments), schema):
            return call.name
    return ""


def _fits(args: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    known = fields(schema.get("properties")).keys()
    strangers = len(args.keys() - known)
    return set(items(schema.get("required"))) <= args.keys() and strangers <= len(args) - strangers


class WrittenCallWarning(Interceptor):
    """Warns the user when the model wrote a tool call as text, which ends the turn."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools

    async def after(self, reply: Message, branch: Branch) -> None:
        text = reply.text[-LONGEST:]
        named = [tool for tool in self._tools() if tool.name in text] if _HINTS.search(text) else []
        if not named or not (name := await asyncio.to_thread(call_in_text, text, named)):
            return
        # A model that has called tools before can do so: this call was a mistake.
        able = any(message.calls and message.model == reply.model for message in branch.transcript.messages)
        what = f"The model wrote a call of {name} as text instead of making it, so nothing was run."
        branch.emit(Notice(what, "warning", AGAIN if able else HINT))
