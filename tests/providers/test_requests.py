"""What is sent: each request extends the last byte for byte, in the order tools, system, messages."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.core.events import MessageDone, Steered, ToolFinished, TurnStarted
from ba_tui.core.messages import (
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    reminder,
    user,
)
from ba_tui.core.provider import ModelRequest
from ba_tui.core.results import ToolResult
from ba_tui.core.transcript import Transcript
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.loopback.formats import signature
from tests.providers.conftest import CLAUDE, GPT, NOW, READ, Connect, collect, until_error

START = Callable[..., ModelServer]
PNG = Image("image/png", "iVBORw0KGgo=")
TOOLS = (READ, NOW)


def without_marks(body: bytes) -> bytes:
    return re.sub(rb',?"cache_control":\{"type":"ephemeral"\}', b"", body)


async def one(model_server: START, connect: Connect, vendor: str, request: ModelRequest, **options: Any) -> Any:
    """The JSON that is sent for ``request``."""
    server = model_server([Step(say="ok")])
    _, error = await until_error(connect(vendor, server, **options).stream(request))
    assert error is None
    return server.requests[0].json


async def test_each_request_extends_the_last(model_server: START, connect: Connect, vendor: str) -> None:
    calling = Step(
        think="Look.", say="Reading.", calls=(ScriptedCall("read_file", {"path": "ä.py"}), ScriptedCall("now"))
    )
    turn = [calling, calling, Step(say="There you are.")]
    server = model_server(turn * 4)
    provider = connect(vendor, server)
    transcript = Transcript()
    for number in range(4):
        transcript.apply(TurnStarted(user(f"Prompt {number} ✓")))
        transcript.apply(Steered(reminder(f"It is {number} o'clock.")))
        while True:
            message = (await collect(provider.stream(ModelRequest("Be brief.", transcript.messages, TOOLS))))[-1]
            transcript.apply(MessageDone(message))
            for call in message.calls:
                # Read in between, as a meter does: the answers are put together anew each time.
                assert transcript.messages
                transcript.apply(ToolFinished(call.id, ToolResult(f"result of {call.id}")))
            if not message.calls:
                break
            transcript.apply(Steered(reminder("Mind the todos.")))
    bodies = [without_marks(seen.body) for seen in server.requests]
    assert len(bodies) == 12
    for earlier, later in itertools.pairwise(bodies):
        closing = re.search(rb"\]\}$", earlier)
        assert closing
        assert later.startswith(earlier[: closing.start()])
    assert [seen.json["messages"][-1]["role"] for seen in server.requests] == ["user"] * 12


async def test_the_stable_comes_first(model_server: START, connect: Connect) -> None:
    sent = await one(model_server, connect, "anthropic", ModelRequest("Be brief.", [user("Hi")], TOOLS))
    keys = list(sent)
    assert keys.index("tools") < keys.index("system") < keys.index("messages")
    assert sent["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert sent["cache_control"] == {"type": "ephemeral"}
    assert [tool["name"] for tool in sent["tools"]] == ["read_file", "now"]
    assert sent["tools"][0]["input_schema"] == READ.input_schema
    sent = await one(model_server, connect, "openai", ModelRequest("Be brief.", [user("Hi")], TOOLS))
    assert list(sent).index("tools") < list(sent).index("messages")
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert sent["stream_options"] == {"include_usage": True}


async def test_forbidding_calls_keeps_the_tools_listed(model_server: START, connect: Connect, vendor: str) -> None:
    server = model_server([Step(say="a"), Step(say="b")])
    provider = connect(vendor, server)
    for allowed in (True, False):
        await collect(provider.stream(ModelRequest("", [user("Hi")], TOOLS, call_tools=allowed)))
    free, bound = (seen.json for seen in server.requests)
    assert bound.pop("tool_choice") in ({"type": "none"}, "none")
    assert free == bound
    assert server.requests[1].body.startswith(server.requests[0].body[:-1])


async def test_without_tools_nothing_is_said_of_them(model_server: START, connect: Connect, vendor: str) -> None:
    sent = await one(model_server, connect, vendor, ModelRequest("", [user("Hi")], (), call_tools=False))
    assert "tools" not in sent
    assert "tool_choice" not in sent
    assert "system" not in sent


async def test_further_fields_are_sent_as_given(model_server: START, connect: Connect, vendor: str) -> None:
    options = {"temperature": 0.5, "max_tokens": 77}
    sent = await one(model_server, connect, vendor, ModelRequest("", [user("Hi")], ()), options=options)
    assert (sent["temperature"], sent["max_tokens"], sent["model"]) == (
        0.5,
        77,
        "claude-test" if vendor == "anthropic" else "gpt-test",
    )


async def test_models_that_think_by_themselves_are_asked_to_show_it(model_server: START, connect: Connect) -> None:
    model = replace(CLAUDE, family="claude-5")
    sent = await one(model_server, connect, "anthropic", ModelRequest("", [user("Hi")], ()), model=model)
    assert sent["thinking"] == {"type": "adaptive", "display": "summarized"}
    own = {"thinking": {"type": "disabled"}}
    sent = await one(model_server, connect, "anthropic", ModelRequest("", [user("Hi")], ()), model=model, options=own)
    assert sent["thinking"] == {"type": "disabled"}


async def test_thinking_goes_back_as_it_came(model_server: START, connect: Connect) -> None:
    thought = "Zwei\n\nZeilen ✓"
    server = model_server([Step(think=thought, say="one"), Step(say="two")])
    provider = connect("anthropic", server)
    first = (await collect(provider.stream(ModelRequest("", [user("Hi")], ()))))[-1]
    await collect(provider.stream(ModelRequest("", [user("Hi"), first, user("And?")], ())))
    sent = server.requests[1].json["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": thought, "signature": signature(thought)}


HISTORY = (
    Thinking("mine", "sig"),
    RedactedThinking("xyz"),
    Opaque({"type": "server_tool_use", "id": "s", "input": {"q": 1}}, "anthropic"),
    Opaque({"type": "message_extra", "reasoning_details": [{"data": "enc"}]}, "openai"),
    Text("words"),
)


@pytest.mark.parametrize("author", ["anthropic/claude-test", "anthropic/claude-other", "openai/gpt-test", ""])
async def test_reasoning_goes_only_to_the_model_it_is_from(
    model_server: START, connect: Connect, vendor: str, author: str
) -> None:
    answer = Message("assistant", HISTORY, model=author)
    sent = await one(model_server, connect, vendor, ModelRequest("", [user("Hi"), answer, user("And?")], ()))
    if vendor == "anthropic":
        kinds = [block["type"] for block in sent["messages"][1]["content"]]
        own = ["thinking", "redacted_thinking"] if author == CLAUDE.id else []
        assert kinds == [*own, "server_tool_use", "text"]
    else:
        said = sent["messages"][1]
        assert said["content"] == "words"
        assert said.get("reasoning_content") == ("mine" if author == GPT.id else None)
        assert said.get("reasoning_details") == ([{"data": "enc"}] if author == GPT.id else None)


async def test_a_message_of_which_nothing_is_left_is_not_sent(
    model_server: START, connect: Connect, vendor: str
) -> None:
    empty = Message("assistant", (Thinking("theirs", "sig"), Text("  \n")), model="other/model")
    sent = await one(model_server, connect, vendor, ModelRequest("", [user("Hi"), empty, user("And?")], ()))
    assert [message["role"] for message in sent["messages"]] == ["user", "user"]


async def test_answers_to_calls_come_first_and_with_their_pictures(
    model_server: START, connect: Connect, vendor: str
) -> None:
    calls = Message("assistant", (ToolUse("a1", "now", {}), ToolUse("a2", "now", {})), model="x")
    answers = (
        Text("By the way"),
        ToolOutput("a1", "one", attachments=(PNG,)),
        ToolOutput("a2", "no", is_error=True),
    )
    sent = await one(
        model_server, connect, vendor, ModelRequest("", [user("Hi"), calls, Message("user", answers)], TOOLS)
    )
    if vendor == "anthropic":
        first, second, words = sent["messages"][2]["content"]
        assert first["content"][0] == {"type": "text", "text": "one"}
        assert first["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG.data}
        assert second == {"type": "tool_result", "tool_use_id": "a2", "content": "no", "is_error": True}
        assert words["text"] == "By the way"
    else:
        first, second, rest = sent["messages"][2:]
        assert first == {"role": "tool", "tool_call_id": "a1", "content": "one"}
        assert second == {"role": "tool", "tool_call_id": "a2", "content": "no"}
        assert rest["content"][0] == {"type": "text", "text": "By the way"}
        assert rest["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG.data}"


async def test_files_and_pictures_are_sent(model_server: START, connect: Connect, vendor: str) -> None:
    blocks = (
        Text("See"),
        Image("", url="https://example.org/a.png"),
        Document("application/pdf", "JVBERi0=", "a.pdf"),
        Document("text/plain", "w6Q=", "a.txt"),
    )
    sent = await one(model_server, connect, vendor, ModelRequest("", [Message("user", blocks)], ()))
    content = sent["messages"][0]["content"]
    if vendor == "anthropic":
        assert content[1]["source"] == {"type": "url", "url": "https://example.org/a.png"}
        assert content[2]["source"]["data"] == "JVBERi0="
        assert content[2]["title"] == "a.pdf"
        assert content[3]["source"] == {"type": "text", "media_type": "text/plain", "data": "ä"}
    else:
        assert content[1]["image_url"]["url"] == "https://example.org/a.png"
        assert content[2]["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
        assert content[3]["text"] == "a.txt\nä"


async def test_a_model_that_sees_nothing_gets_words_instead(model_server: START, connect: Connect, vendor: str) -> None:
    model = replace(CLAUDE if vendor == "anthropic" else GPT, vision=False)
    request = ModelRequest("", [Message("user", (Text("See"), PNG))], ())
    sent = await one(model_server, connect, vendor, request, model=model)
    assert PNG.data not in json.dumps(sent)
    assert "can't see pictures" in json.dumps(sent)


async def test_ids_of_other_vendors_are_made_fit_and_stay_paired(
    model_server: START, connect: Connect, vendor: str
) -> None:
    ids = ["functions.now:0", "x" * 80, "call_äö", "toolu_fine-1"]
    calls = Message("assistant", tuple(ToolUse(id, "now", {}) for id in ids), model="x")
    answers = Message("user", tuple(ToolOutput(id, "ok") for id in ids))
    sent = await one(model_server, connect, vendor, ModelRequest("", [user("Hi"), calls, answers], TOOLS))
    if vendor == "anthropic":
        used = [block["id"] for block in sent["messages"][1]["content"]]
        answered = [block["tool_use_id"] for block in sent["messages"][2]["content"]]
    else:
        used = [call["id"] for call in sent["messages"][1]["tool_calls"]]
        answered = [message["tool_call_id"] for message in sent["messages"][2:]]
    assert used == answered
    assert used[3] == "toolu_fine-1"
    assert len(set(used)) == 4
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", id) for id in used)


async def test_text_that_is_no_unicode_does_not_stop_a_request(
    model_server: START, connect: Connect, vendor: str
) -> None:
    sent = await one(model_server, connect, vendor, ModelRequest("", [user("half \ud83d of it")], ()))
    assert "half ? of it" in json.dumps(sent)


async def test_a_message_that_grew_is_encoded_anew(model_server: START, connect: Connect, vendor: str) -> None:
    server = model_server([Step(say="a"), Step(say="b")])
    provider = connect(vendor, server)
    prompt = user("Hello")
    await collect(provider.stream(ModelRequest("", [prompt], ())))
    await collect(provider.stream(ModelRequest("", [prompt.joined(user("and more"))], ())))
    assert "and more" not in json.dumps(server.requests[0].json)
    assert "and more" in json.dumps(server.requests[1].json)
    assert "Hello" in json.dumps(server.requests[1].json)
