"""Pictures and documents that a server refuses leave the session's requests, over real HTTP with both formats."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ba_tui.core.events import MediaLeftOut, MessageDone, Notice, ToolFinished, TurnEnded
from ba_tui.core.messages import Document, Image, Message, Text, ToolUse, media_key, media_of
from ba_tui.core.provider import Provider
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.providers.media import LARGEST, MANY, MOST, MediaFilter, SentMedia, too_much
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.tools.builtin.media import pixels
from tests.loopback import ModelServer, Status
from tests.loopback.fixtures import model_server
from tests.providers.conftest import Connect, connect, vendor
from tests.script import Memory, Mind, collect, conversation, thinking

__all__ = ["connect", "model_server", "vendor"]
START = Callable[..., ModelServer]
REFUSALS = (
    "Could not process image",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6289804 bytes > 5242880 bytes",
    "You uploaded an unsupported image. Please make sure your image is valid.",
    "Invalid MIME type. Only image types are supported.",
    "Unable to process input image. Please retry or report in the developer forum.",
    "messages[1].content must be a string",
    "The request is malformed.",
)


def png(number: int, side: int = 1) -> Image:
    """A picture whose bytes differ by ``number``; only its header is true."""
    header = b"IHDR" + struct.pack(">II", side, side) + b"\x08\x00\x00\x00\x00"
    data = b"\x89PNG\r\n\x1a\n\0\0\0\r" + header + struct.pack(">I", zlib.crc32(header)) + f"picture {number}".encode()
    return Image("image/png", base64.b64encode(data).decode())


def asking(text: str, *media: Image | Document) -> Message:
    return Message("user", (Text(text), *media))


def carried(body: bytes) -> list[int]:
    """The numbers of the pictures within a request."""
    return [number for number in range(40) if png(number).data[48:].rstrip("=").encode() in body]


def accepted(provider: Provider) -> MediaFilter:
    return MediaFilter(provider, pixels)


async def said(talk: Any, message: Message) -> list[Any]:
    events = await collect(talk.say(message))
    assert isinstance(events[-1], TurnEnded)
    return events


@pytest.mark.parametrize("words", REFUSALS)
async def test_a_refused_picture_leaves_the_session_and_the_turn_goes_on(
    model_server: START, connect: Connect, vendor: str, words: str
) -> None:
    server = model_server([Status(400, words), Step(say="I can't see it."), Step(say="Fine."), Step(say="Still fine.")])
    journal = Memory()
    talk = conversation(accepted(connect(vendor, server)), journal=journal)
    events = await said(talk, asking("What is this?", png(1)))
    assert events[-1].reason == "done"
    notices = [event for event in events if isinstance(event, Notice)]
    assert [words[:30] in notice.text and "1 picture" in notice.text for notice in notices] == [True]
    assert "\n" not in notices[0].text
    await said(talk, asking("Go on."))
    resumed = thinking(Mind(accepted(connect(vendor, server))), Memory(journal.read()))
    await said(resumed, asking("And now?"))
    first, *later = (request.body for request in server.requests)
    assert carried(first) == [1]
    assert [carried(body) for body in later] == [[], [], []]
    assert all(b"picture was here" in body and b"What is this?" in body for body in later)
    # What was not changed has the same bytes: each later request only adds to the one before.
    stable = [len(_shared(before, after)) > len(before) - 60 for before, after in pairwise(later)]
    assert stable == [True, True]


def _shared(one: bytes, other: bytes) -> bytes:
    size = next((at for at in range(min(len(one), len(other))) if one[at] != other[at]), min(len(one), len(other)))
    return one[:size]


async def test_the_picture_that_a_server_names_goes_and_others_stay(model_server: START, connect: Connect) -> None:
    where = (
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
    )
    server = model_server([Status(400, where), Step(say="Two left.")])
    talk = conversation(accepted(connect("anthropic", server)))
    await said(talk, asking("These?", png(1), png(2), png(3)))
    assert [carried(request.body) for request in server.requests] == [[1, 2, 3], [2, 3]]


async def test_pictures_that_were_answered_before_stay(model_server: START, connect: Connect, vendor: str) -> None:
    server = model_server([Step(say="Nice."), Status(400, "Could not process image"), Step(say="Only the first.")])
    talk = conversation(accepted(connect(vendor, server)))
    await said(talk, asking("This?", png(1)))
    await said(talk, asking("And these?", png(2), png(3)))
    assert [carried(request.body) for request in server.requests] == [[1], [1, 2, 3], [1]]


async def test_a_picture_of_a_tool_result_and_a_document_with_a_password(
    model_server: START, connect: Connect, vendor: str
) -> None:
    async def run(args: Any, call: Any) -> ToolResult:
        document = Document("application/pdf", base64.b64encode(b"%PDF-1.7 locked").decode(), "locked.pdf")
        return ToolResult("Attached.", attachments=(png(4), document))

    read = Tool("read_file", "Read a file.", {"type": "object", "properties": {}}, run)
    steps = [
        Step(calls=(ScriptedCall("read_file"),)),
        Status(400, "The PDF specified is password protected."),
        Step(say="?"),
    ]
    server = model_server(steps)
    talk = conversation(accepted(connect(vendor, server)), read)
    events = await said(talk, asking("Read locked.pdf."))
    assert next(notice.text for notice in events if isinstance(notice, Notice)).startswith(
        "Left out of this request and of later ones: 1 picture and 1 document."
    )
    sent = json.dumps(server.requests[-1].json)
    assert "password protected" in sent
    assert "locked.pdf" in sent
    assert base64.b64encode(b"%PDF-1.7 locked").decode() not in sent


async def test_the_number_that_a_server_allows_is_kept(model_server: START, connect: Connect) -> None:
    server = model_server([Status(400, "At most 2 image(s) may be provided in one request."), Step(say="Two.")])
    talk = conversation(accepted(connect("openai", server)))
    await said(talk, asking("These?", png(1), png(2), png(3), png(5)))
    assert [carried(request.body) for request in server.requests] == [[1, 2, 3, 5], [3, 5]]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (404, "No endpoints found that support image input"),
    ],
)
async def test_a_model_without_eyes_gets_no_picture(
    model_server: START, connect: Connect, status: int, words: str
) -> None:
    server = model_server([Status(status, words), Step(say="I read words only.")])
    talk = conversation(accepted(connect("openai", server)))
    assert (await said(talk, asking("This?", png(1))))[-1].reason == "done"
    assert len(server.requests) == 2


async def test_a_refusal_for_another_reason_is_told_as_it_is_and_keeps_the_picture(
    model_server: START, connect: Connect, vendor: str
) -> None:
    refused = Status(400, "temperature: must be below 1")
    server = model_server([refused, Status(400, "temperature: must be below 1 (again)"), Step(say="Seen.")])
    talk = conversation(accepted(connect(vendor, server)))
    events = await said(talk, asking("This?", png(1)))
    assert events[-1].reason == "error"
    assert events[-1].error.message.endswith("“temperature: must be below 1.”")
    assert not any(isinstance(event, MediaLeftOut | Notice) for event in events)
    await said(talk, asking("Now?"))
    assert carried(server.requests[-1].body) == [1]


async def test_a_session_that_is_stuck_since_an_older_version_goes_on(
    model_server: START, connect: Connect, vendor: str
) -> None:
    server = model_server([Status(400, "Could not process image"), Step(say="Free.")])
    talk = conversation(accepted(connect(vendor, server)))
    stuck = Memory()
    first = conversation(accepted(connect(vendor, model_server([Status(400, "x"), Status(400, "x")]))), journal=stuck)
    await said(first, asking("This?", png(1)))
    talk = thinking(Mind(accepted(connect(vendor, server))), stuck)
    assert (await said(talk, asking("Hello?")))[-1].reason == "done"
    assert carried(server.requests[-1].body) == []


async def test_the_journal_folds_to_what_was_sent(model_server: START, connect: Connect) -> None:
    server = model_server([Status(400, "Could not process image"), Step(say="Fine.")])
    journal = Memory()
    talk = conversation(accepted(connect("anthropic", server)), journal=journal)
    await said(talk, asking("This?", png(1)))
    messages = Transcript("main", journal.read()).messages
    assert [block for message in messages for block in media_of(message)] == []
    # A user's words stay the user's; the note is ba's.
    assert messages[0].said == "This?"


def test_a_result_among_open_calls_loses_its_picture_too():
    transcript = Transcript()
    transcript.apply(MessageDone(Message("assistant", (ToolUse("1", "a", {}), ToolUse("2", "b", {})))))
    transcript.apply(ToolFinished("1", ToolResult("Attached.", attachments=(png(1), png(2)))))
    transcript.apply(MediaLeftOut((media_key(png(1)),), "Refused."))
    assert [media_of(message) for message in transcript.messages] == [[], [png(2)]]


def sent(*pictures: Image, message: int = 0) -> list[SentMedia]:
    return [SentMedia(each, message, max(pixels(base64.b64decode(each.data)) or (0,))) for each in pictures]


def test_what_no_server_takes_is_not_sent():
    assert too_much(sent(*(png(n, 2_000) for n in range(MOST)))) is None
    gone, why = too_much(sent(*(png(n) for n in range(MOST + 1)))) or ([], "")
    assert [each.media for each in gone] == [png(n) for n in range(51)]
    assert "100 pictures" in why
    gone, why = too_much(sent(png(1, 8_001), png(2, 8_000))) or ([], "")
    assert ([each.media for each in gone], "8,000 pixels" in why) == ([png(1, 8_001)], True)
    large = Image("image/png", "A" * (LARGEST + 4))
    assert [each.media for each in (too_much([SentMedia(png(1), 0), SentMedia(large, 0)]) or ([], ""))[0]] == [large]
    half = [SentMedia(Document("application/pdf", str(n) + "A" * 9_000_000), n) for n in range(3)]
    assert [each.message for each in (too_much(half) or ([], ""))[0]] == [0, 1]


def test_with_many_pictures_the_large_ones_go_but_not_those_just_asked_about():
    small = sent(*(png(n) for n in range(MANY)))
    assert too_much([*small[1:], *sent(png(30, 3_000))]) is None
    gone, why = too_much([*sent(png(30, 3_000)), *sent(*(png(n) for n in range(MANY)), message=2)]) or ([], "")
    assert [each.media for each in gone] == [png(30, 3_000)]
    assert "2,000 pixels" in why
    gone, _ = too_much([*small, *sent(png(30, 3_000), message=2)]) or ([], "")
    assert [each.media for each in gone] == [png(0)]


async def test_many_pictures_are_left_out_before_they_are_sent_and_once(model_server: START, connect: Connect) -> None:
    server = model_server([Step(say="Twenty."), Step(say="The new one.")])
    talk = conversation(accepted(connect("anthropic", server)))
    await said(talk, asking("These?", png(0, 2_500), *(png(n) for n in range(1, MANY))))
    events = await said(talk, asking("And this?", png(21)))
    assert len([event for event in events if isinstance(event, MediaLeftOut)]) == 1
    assert [len(carried(request.body)) for request in server.requests] == [MANY, MANY]
    assert 0 not in carried(server.requests[1].body)
