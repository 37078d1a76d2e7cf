"""A provider around any provider, for models that can't call tools by an API: they write calls, and read results.

The loop never knows: it gets calls as blocks and gives results as blocks. How either is written is rendering's and
reading's business.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import TypeAlias, cast

from ba_tui.core.events import TextDelta
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ProviderWrapper, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.providers.text_calls.forms import Form
from ba_tui.providers.text_calls.hearing import Hearing
from ba_tui.providers.text_calls.known import Known
from ba_tui.providers.text_calls.prompting import example, offered, shortened, tool_prompt
from ba_tui.providers.text_calls.reading import Reading
from ba_tui.providers.text_calls.rendering import Rendering, unread_calls

Examples: TypeAlias = Callable[[Form, Sequence[Tool], ModelInfo], Sequence[Message]]

FORGIVEN = 2
"""Replies in a row whose calls can't be read. The next one stands as an answer."""


class TextTools(ProviderWrapper):
    """``provider`` without tools in its requests: they are part of the system prompt, in ``form``.

    ``examples`` makes the rounds that the model is shown before the conversation.
    """

    def __init__(self, provider: Provider, form: Form, examples: Examples = example) -> None:
        super().__init__(provider)
        self._examples = examples
        self.form: Form = form
        self._rendering = Rendering(form, provider.model)
        self._tools: Sequence[Tool] = ()
        self._known = Known(())
        self._prompt = ""
        self._example: Sequence[Message] = ()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        self._learn(request.tools)
        hearing = Hearing(self._known, "asked", self.model, commands=self.form == "command")
        answer = cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(self._as_text(request)))
        async with contextlib.aclosing(answer) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextDelta(text=text):
                        for each in hearing.delta(text):
                            yield each
                        if found := await hearing.stopped():
                            for each in hearing.ending(found, None):
                                yield each
                            return
                    case Message():
                        found = self._judged(await hearing.read(chunk), request)
                        for each in hearing.ending(found, chunk):
                            yield each
                        return
                    case _:
                        yield chunk

    def _judged(self, found: Reading, request: ModelRequest) -> Reading:
        """What counts of a reply: no call where none was allowed, and no unreadable one after others."""
        broken = any(call.problem for call in found.calls)
        if found.calls and (not request.call_tools or (broken and _unread_in_a_row(request.messages) >= FORGIVEN)):
            words = [found.prose, *(call.source for call in found.calls if broken and request.call_tools)]
            return Reading("\n\n".join(filter(None, words)) or found.calls[0].source)
        return found

    def _learn(self, tools: Sequence[Tool]) -> None:
        if tools is not self._tools:
            self._tools = tools
            known = offered(self.form, tools)
            self._known = Known(known)
            self._prompt = tool_prompt(self.form, known, short=shortened(self.model)) if known else ""
            self._example = self._examples(self.form, known, self.model) if known else ()

    def _as_text(self, request: ModelRequest) -> ModelRequest:
        # Tools come first: they are the same in every folder and on every day, and so stay in a server's cache.
        system = "\n\n".join(filter(None, (self._prompt, request.system)))
        return ModelRequest(system, [*self._example, *self._rendering.messages(request.messages)], ())


def _unread_in_a_row(messages: Sequence[Message]) -> int:
    """How many of the newest answers came to nothing but calls that could not be read."""
    count = 0
    for message in reversed(messages):
        if message.role == "assistant":
            if not message.calls or len(unread_calls(message)) < len(message.calls):
                return count
            count += 1
    return count
