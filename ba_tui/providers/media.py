"""Pictures and documents in requests: those that a server refuses are removed, and a note replaces them.

Servers check each request as a whole, so one bad picture would make every later request of the session fail.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import filterfalse

from ba_tui.core.errors import ContextOverflow, ProviderError, RequestRefused
from ba_tui.core.events import MediaLeftOut, MessageRestarted, Notice, Retrying
from ba_tui.core.messages import Document, Image, Message, media_key, media_of, without_media
from ba_tui.core.provider import ModelRequest, Provider, ProviderStage, ReplyChunk
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.providers.token_counter import Pixels

LARGEST = 5 * 1024 * 1024
"""Bytes of one picture as base64."""
LONGEST_SIDE = 8_000
"""Pixels a side of a picture, in a request with at most MANY pictures."""
MANY, MANY_SIDE = 20, 2_000
"""In a request with more pictures than this, none may have more pixels a side than that."""
MOST, FEWER = 100, 50
"""Pictures of one request; of more only the newest FEWER are sent, so that this does not happen each time."""
ALL, LESS = 24 * 1024 * 1024, 12 * 1024 * 1024
"""Bytes of all media as base64, and how much is sent when there are more. Servers take 32 MB including the text."""
RETRIES = 2
HINT = "To show it again, attach a smaller copy, or a PNG or JPEG."


@frozen
class SentMedia:
    """A picture or document of message ``message``; ``side``: the longer side of a picture in pixels, or 0."""

    media: Image | Document
    message: int
    side: int = 0

    @property
    def size(self) -> int:
        return len(self.media.data)


class MediaFilter(ProviderStage):
    """Removes media that servers refuse. The removal is a chunk of the answer, so that later requests of the session
    leave them out too. ``pixels`` reads width and height of a picture."""

    def __init__(self, provider: Provider, pixels: Pixels) -> None:
        super().__init__(provider)
        self._pixels = pixels
        self._messages: list[Message] = []
        self._sent: list[SentMedia] = []
        """The media of ``_messages``; only new messages are searched."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """Raise the error of the first attempt when further ones fail."""
        while excess := too_much(sent := await self._media(request.messages)):
            gone, why = excess
            request, left_out = await asyncio.to_thread(_without, request, gone, why)
            yield left_out
            yield _notice(gone, why)
        shown, retries, pending = False, 0, list[ReplyChunk]()
        refusal: ProviderError | None = None
        while True:
            try:
                async with self._answer(request) as chunks:
                    async for chunk in chunks:
                        if pending and not isinstance(chunk, Retrying | Notice):
                            # The server accepted the request: the removed media were the reason.
                            for each in pending:
                                yield each
                            pending.clear()
                        shown = True
                        yield chunk
                        if isinstance(chunk, Message):
                            return
                return
            except (RequestRefused, ContextOverflow) as error:
                refusal = refusal or error
                gone = refused(error, sent, request.messages, self.model.id, last=retries > 0)
                if not gone or retries == RETRIES:
                    raise refusal from error
            retries += 1
            why = str(refusal)
            request, left_out = await asyncio.to_thread(_without, request, gone, why)
            sent = list(filterfalse(gone.__contains__, sent))
            pending += [left_out, _notice(gone, why), *([MessageRestarted()] if shown else [])]

    async def _media(self, messages: Sequence[Message]) -> list[SentMedia]:
        """Return all media of ``messages``, the oldest first."""
        known = len(self._messages)
        if list(messages[:known]) != self._messages:
            known, self._sent = 0, []
        found: list[SentMedia] = []
        for at in range(known, len(messages)):
            if media := media_of(messages[at]):
                found += [SentMedia(each, at, await asyncio.to_thread(self._side, each)) for each in media]
        self._messages = list(messages)
        self._sent = [*self._sent, *found]
        return self._sent

    def _side(self, media: Image | Document) -> int:
        try:
            size = self._pixels(base64.b64decode(media.data)) if isinstance(media, Image) else None
        except binascii.Error:
            return 0
        return max(size) if size else 0


def too_much(sent: Sequence[SentMedia]) -> tuple[list[SentMedia], str] | None:
    """Return the media beyond a server's limits and the exceeded limit; None when all can be sent."""
    pictures = [each for each in sent if isinstance(each.media, Image)]
    if gone := [each for each in pictures if each.size > LARGEST]:
        return gone, "pictures may have 5 MB at most"
    if gone := [each for each in pictures if each.side > LONGEST_SIDE]:
        return gone, f"pictures may have {LONGEST_SIDE:,} pixels a side at most"
    if len(pictures) > MOST:
        return pictures[:-FEWER], f"a request may have {MOST} pictures at most"
    if len(pictures) > MANY and (large := [each for each in pictures if each.side > MANY_SIDE]):
        why = f"with more than {MANY} pictures in a request, none may have more than {MANY_SIDE:,} pixels a side"
        # The newest message has the pictures that the user asks about; the oldest are removed first.
        return [each for each in large if each.message < sent[-1].message] or pictures[:-MANY], why
    if sum(each.size for each in sent) > ALL:
        left = len(sent)
        while left and sum(each.size for each in sent[left - 1 :]) <= LESS:
            left -= 1
        return list(sent[:left]), "the pictures and documents of a request may have 24 MB at most"
    return None


def refused(
    error: ProviderError, sent: Sequence[SentMedia], messages: Sequence[Message], model: str, *, last: bool
) -> list[SentMedia]:
    """Return the media that a server probably means with ``error``; empty when the error is about something else.

    These are the media that it names, or those beyond the number that it allows; else those that this model has not
    read in any request that it answered. ``last``: those were removed already, and it still refuses media.
    """
    about_media = isinstance(error, RequestRefused) and error.media
    if isinstance(error, RequestRefused) and about_media:
        if error.keys and (named := [each for each in sent if media_key(each.media) in error.keys]):
            return named
        if 0 < error.most < len(sent):
            return list(sent[: -error.most])
    if last:
        return list(sent) if about_media else []
    answered = [at for at, message in enumerate(messages) if message.role == "assistant" and message.model == model]
    new = [each for each in sent if each.message > (answered or [-1])[-1]]
    return new or (list(sent) if about_media else [])


def _without(request: ModelRequest, gone: Sequence[SentMedia], why: str) -> tuple[ModelRequest, MediaLeftOut]:
    """Return ``request`` without ``gone``, and the event for it. Hashes media: call it off the event loop."""
    keys = tuple(dict.fromkeys(media_key(each.media) for each in gone))
    messages = tuple(without_media(message, keys, why) for message in request.messages)
    return replace(request, messages=messages), MediaLeftOut(keys, why)


def _notice(gone: Sequence[SentMedia], why: str) -> Notice:
    pictures = sum(isinstance(each.media, Image) for each in gone)
    documents = len(gone) - pictures
    what = [count(number, word) for number, word in ((pictures, "picture"), (documents, "document")) if number]
    reason = f"{why[:1].upper()}{why[1:]}{'' if why.endswith(('.', '”')) else '.'}"
    return Notice(f"Left out of this request and of later ones: {' and '.join(what)}. {reason}", "warning", HINT)
