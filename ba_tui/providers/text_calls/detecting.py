"""A provider around any provider: tools go the vendor's way until a reply shows that the model calls by writing.

Light to import, since every start imports it: what reads and writes calls comes in with the first reply that needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from ba_tui.core.errors import BadRequest, ContextOverflow, ModelNotFound, Overloaded, ProviderError
from ba_tui.core.events import Notice, TextDelta
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelRequest, Provider, ProviderWrapper, ReplyChunk
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool

if TYPE_CHECKING:
    from ba_tui.providers.text_calls.formats import Formats
    from ba_tui.providers.text_calls.forms import Form
    from ba_tui.providers.text_calls.hearing import Hearing
    from ba_tui.providers.text_calls.known import Known
    from ba_tui.providers.text_calls.reading import Reading, Stance

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
"""Without any of these no call can have begun."""
_MARKS = regex(r"<|\[TOOL|functools")
LONGEST_HINT = 10
"""Characters that a hint may have, which can come in pieces."""
KEEP = "For native calls set providers.NAME.tools: native."


class Detecting(ProviderWrapper):
    """``provider`` as it is, for as long as that works; what is learnt of the model goes into ``formats``."""

    def __init__(self, provider: Provider, formats: Formats) -> None:
        super().__init__(provider)
        self._formats = formats
        self._text: Provider | None = None
        """What is asked instead, once the model is known to write its calls."""
        self._proven = False
        """Whether the model has called a tool the vendor's way."""
        self._known: tuple[Sequence[Tool], Known] | None = None
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
        async with contextlib.aclosing(_generator(cast("Provider", self._text), request)) as chunks:
            async for chunk in chunks:
                yield chunk
                if isinstance(chunk, Message):
                    return

    async def _asked(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The answer to a request with tools. A call that stands in it as text becomes one."""
        hearing: Hearing | None = None
        hints = _MARKS if self._proven else _HINTS
        before = ""
        listening = bool(request.tools) and request.call_tools
        async with contextlib.aclosing(_generator(self._provider, request)) as chunks:
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

    def _hearing(self, request: ModelRequest, before: str) -> Hearing:
        from ba_tui.providers.text_calls.hearing import Hearing  # noqa: PLC0415 - most models never need it
        from ba_tui.providers.text_calls.known import Known  # noqa: PLC0415

        if self._known is None or self._known[0] is not request.tools:
            self._known = (request.tools, Known(request.tools))
        stance: Stance = "trusting" if self._proven else "watching"
        return Hearing(self._known[1], stance, self.model, before=before)

    def _repaired(self, hearing: Hearing, found: Reading, message: Message | None) -> Iterator[ReplyChunk]:
        if not self._proven:
            # Between tags it was trained to write them; else the form that most models keep to will do.
            yield self._learn("tags" if hearing.tagged else "text", WRITTEN)
        yield from hearing.ending(found, message)

    def _learn(self, form: str, why: str) -> Notice:
        """From the next request on the model is asked to write its calls. What the person is told."""
        from ba_tui.providers.text_calls.formats import Learnt  # noqa: PLC0415 - most models never need it

        chosen = self._write(form)
        log.info("%s is asked for calls as text (%s): %s", self.model.id, chosen, why)
        saving = asyncio.create_task(asyncio.to_thread(self._formats.learn, self.model.id, Learnt(chosen, why)))
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)
        return Notice(f"{self.model.id} is asked to write its tool calls as text from now on: {why}.", hint=KEEP)

    def _write(self, form: str) -> Form:
        from ba_tui.providers.text_calls.forms import as_form  # noqa: PLC0415 - most models never need it
        from ba_tui.providers.text_calls.text_tools import TextTools  # noqa: PLC0415

        chosen = as_form(form, self.model)
        self._text = TextTools(self._provider, chosen)
        return chosen


def refuses_tools(error: ProviderError) -> bool:
    """Whether a server said that it, or the model, knows no tools at all."""
    if isinstance(error, ContextOverflow) or not isinstance(error, BadRequest | ModelNotFound | Overloaded):
        return False
    said = str(error)
    return bool(_TOOLS.search(said) and _UNSUPPORTED.search(said)) and not _ONE_TOOL.search(said)


def _generator(provider: Provider, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
    return cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))
