"""Answers that can't be used: each fails its own call at once, in words that say what came; the server stays usable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.ports.mcp import McpError, ServerConfig
from ba_tui.features.mcp.client.incoming import Peek
from ba_tui.features.mcp.client.server import Servers
from tests.protocols.mcp.calls import Answered, servers
from tests.protocols.mcp.programs import raw
from tests.protocols.mcp.test_http import endpoint
from tests.protocols.mcp.test_sse import stream

PATIENCE = 20.0
"""Seconds of a call's own timeout here: what fails only then fails the test."""

REPLIES = r"""
def answered(id, text="good", **more):
    result = {"content": [{"type": "text", "text": text}], **more}
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result})

def line(text, end="\n"):
    sys.stdout.buffer.write(text if isinstance(text, bytes) else (text + end).encode())
    sys.stdout.flush()

def reply(message):
    id, kind = message["id"], message["params"]["arguments"]["kind"]
    good = answered(id)
    match kind:
        case "surrogate": line(good.replace("good", "a\\ud800b"))
        case "cut": line(good[:-3])
        case "bytes": line(good.encode().replace(b"good", b"\xff\xfe") + b"\n")
        case "batch": line("[" + good + "]")
        case "other id": line(answered(id + 1_000))
        case "text id": line(answered("nope"))
        case "null id": line(json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}}))
        case "old id": line(answered(id - 1, "other"))
        case "result and error": line(good[:-1] + ', "error": {"code": 1, "message": "no"}}')
        case "no result": line(json.dumps({"jsonrpc": "2.0", "id": id}))
        case "escape": line(good.replace('"result"', '\x1b]0;owned\x07"result"'))
        case "huge":
            line('{"jsonrpc":"2.0","id":%d,"result":{"content":"%s"}}' % (id, "x" * 10_500_000))
        case "half": line(good[:30], "")
        case "no newline": line(good, "")
        case "twice": line(good + "\n" + good)
        case "one line": line(json.dumps({"jsonrpc": "2.0", "method": "notifications/x"}) + good)
        case "prefix": line("working... ", ""); line(good)
        case "as text": line(answered(str(id)))
        case _: line(good)
serve([tool()], reply)
"""
FAILING = [
    ("surrogate", r"not valid JSON \(.*hex escape.*\): \d+ bytes, beginning with {\"jsonrpc\""),
    ("cut", r"not valid JSON \(EOF.*\): 8\d bytes"),
    ("bytes", r"not valid JSON"),
    ("batch", r"is a batch, which ba did not ask for: \d+ bytes, beginning with \[{"),
    ("other id", r"has the id 10\d\d, which belongs to no request: \d+ bytes"),
    ("text id", r"has the id 'nope'"),
    ("null id", r"has no id.*what\?"),
    ("old id", r"has the id \d+, which was answered before"),
    ("no result", r"is no JSON-RPC message"),
    ("escape", r"not valid JSON .*\]0;owned"),
    ("huge", r"larger than 10.0 MB, .*: 10.5 MB, beginning with {\"jsonrpc\""),
    ("half", r"stopped before the end of its line: 30 bytes, beginning with"),
]
GOOD = ["no newline", "twice", "one line", "prefix", "as text", "good"]


async def asked(found: Servers, kind: str, name: str = "raw") -> str:
    """The text that a call of ``kind`` gives; fails where it takes longer than an answer does."""
    async with asyncio.timeout(PATIENCE / 2):
        return (await found.each[name].call("echo", {"kind": kind}, Answered().call)).parts[0].text


async def test_an_unusable_line_fails_its_call_at_once_and_the_server_stays_usable(tmp_path: Path) -> None:
    found = servers(tmp_path, raw(tmp_path, REPLIES, call_timeout=1.0))
    await found.connect("raw")
    for kind, words in FAILING:
        with pytest.raises(McpError, match=words) as raised:
            await asked(found, kind)
        assert raised.value.hint
        assert not any(character in str(raised.value) for character in "\n\x1b\x07"), kind
        assert await asked(found, "good") == "good", kind
    for kind in GOOD:
        assert await asked(found, kind) == "good", kind
    assert found.listed()[0].phase == "ready"
    assert found.listed()[0].restarts == 0
    log = "\n".join(found.logs("raw"))
    assert "twice; the second answer was left out" in log
    assert "stdout, not JSON-RPC: working..." in log
    await found.close()


SEVERAL = """
waiting = []
def reply(message):
    waiting.append(message["id"])
    if len(waiting) == 3:
        print('{"jsonrpc": "2.0", "result": {"content": [', flush=True)
        for id in (waiting[0], waiting[2]):
            say(id=id, result={"content": [{"type": "text", "text": "mine"}]})
serve([tool()], reply)
"""


async def test_of_several_calls_the_one_whose_answer_is_broken_fails(tmp_path: Path) -> None:
    found = servers(tmp_path, raw(tmp_path, SEVERAL, call_timeout=PATIENCE))
    await found.connect("raw")
    answers = await asyncio.gather(*(asked(found, "") for _ in range(3)), return_exceptions=True)
    assert [str(answer)[:4] for answer in answers] == ["mine", "The ", "mine"]
    assert "not valid JSON" in str(answers[1])
    await found.close()


PRINTS = """
def reply(message):
    print('{"level": 30, "msg": "called"}', flush=True)
    print('[INFO] called', flush=True)
    print('{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "\\\\ud800"}}', flush=True)
    say(id=message["id"], result={"content": [{"type": "text", "text": "good"}]})
serve([tool()], reply)
"""


async def test_lines_of_a_log_and_broken_notifications_fail_no_call(tmp_path: Path) -> None:
    found = servers(tmp_path, raw(tmp_path, PRINTS, call_timeout=PATIENCE))
    await found.connect("raw")
    assert await asked(found, "") == "good"
    assert any("[INFO] called" in line for line in found.logs("raw"))
    await found.close()


def body(message: Mapping[str, Any]) -> str:
    """The answer to a message over HTTP, as text."""
    id, method = message["id"], message["method"]
    if method == "tools/call":
        result: object = {"content": [{"type": "text", "text": "good"}]}
    elif method == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": {}}]}
    elif method == "initialize":
        info = {"serverInfo": {"name": "old", "version": "1"}, "capabilities": {"tools": {}}}
        result = {"protocolVersion": "2025-03-26", **info}
    else:
        return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})
    good = json.dumps({"jsonrpc": "2.0", "id": id, "result": result})
    match message.get("params", {}).get("arguments", {}).get("kind"):
        case "surrogate":
            return good.replace("good", "a\\ud800b")
        case "cut":
            return good[:-3]
        case "batch":
            return f"[{good}]"
        case "other id":
            return good.replace(f'"id": {id}', f'"id": {id + 1_000}')
        case "escape":
            return f'{{"jsonrpc": \x1b]0;owned\x07{good}'
        case _:
            return good


OVER_HTTP = [
    ("surrogate", r"not valid JSON \(.*hex escape.*\): \d+ bytes, beginning with {\"jsonrpc\""),
    ("cut", r"not valid JSON \(EOF.*\): \d+ bytes, beginning with {\"jsonrpc\""),
    ("batch", r"is a batch, which ba did not ask for: \d+ bytes, beginning with \[{"),
    ("escape", r"not valid JSON .*\]0;owned"),
]
WRONG_ID = ("other id", r"has the id 10\d\d, .*: \d+ bytes")


async def refused_and_usable(found: Servers, cases: list[tuple[str, str]]) -> None:
    """Each case fails at once, and the same connection answers afterwards."""
    await found.connect("web")
    for kind, words in cases:
        with pytest.raises(McpError, match=words) as raised:
            await asked(found, kind, "web")
        assert not any(character in str(raised.value) for character in "\n\x1b\x07"), kind
        assert await asked(found, "good", "web") == "good", kind
    assert found.listed()[0].phase == "ready"
    await found.close()


@pytest.mark.parametrize("events", [False, True])
async def test_an_unusable_answer_over_http_fails_its_call_at_once(tmp_path: Path, *, events: bool) -> None:
    def reply(message: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if "id" not in message:
            return 202, {}, b""
        said = body(message)
        if not events:
            return 200, {"content-type": "application/json"}, said.encode()
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
        return 200, {"content-type": "text/event-stream"}, f"data: {note}\n\nevent: message\ndata: {said}\n\n".encode()

    async with endpoint(reply) as url:
        found = servers(tmp_path, ServerConfig("web", "http", url=url, call_timeout=PATIENCE))
        # In a stream that belongs to a request the SDK takes an answer for that of the request, whatever its id is.
        await refused_and_usable(found, OVER_HTTP if events else [*OVER_HTTP, WRONG_ID])


async def test_an_unusable_event_over_sse_fails_its_call_at_once(tmp_path: Path) -> None:
    async with stream(answered=body) as url:
        found = servers(tmp_path, ServerConfig("web", "sse", url=url, call_timeout=PATIENCE))
        await refused_and_usable(found, [*OVER_HTTP, WRONG_ID])


async def test_a_message_that_an_sse_server_refuses_fails_its_call_at_once(tmp_path: Path) -> None:
    async with stream(answered=body, refused="no way") as url:
        found = servers(tmp_path, ServerConfig("web", "sse", url=url, call_timeout=PATIENCE))
        await found.connect("web")
        with pytest.raises(McpError, match="answered a message with HTTP status 500"):
            await asked(found, "no way", "web")
        assert await asked(found, "good", "web") == "good", "the next call connects again"
        await found.close()


async def test_a_handshake_that_an_sse_server_refuses_fails_at_once(tmp_path: Path) -> None:
    async with stream(refused="initialize") as url:
        found = servers(tmp_path, ServerConfig("web", "sse", url=url, connect_timeout=PATIENCE))
        async with asyncio.timeout(PATIENCE / 2):
            with pytest.raises(McpError, match="answered a message with HTTP status 500"):
                await found.connect("web")
        await found.close()


def test_the_size_and_the_start_of_the_newest_event_are_known() -> None:
    peek = Peek()
    for piece in (b"data: one\n\nda", b"ta: t", b"wo\n\n"):
        peek.feed(piece, events=True)
    assert (peek.size, peek.ends[0]) == (9, b"data: two")
    peek.feed(b"data: three\r\n\r\ndata: fo", events=True)
    assert (peek.size, peek.ends[0]) == (8, b"data: fo")
