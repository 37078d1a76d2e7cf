"""Servers that keep the rules, over stdio: what they offer, how calls go, what they may ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.mcp import McpError, ServerConfig
from ba_tui.core.questions import Question, Reply
from ba_tui.core.tool import Call
from ba_tui.features.mcp.client.server import Servers
from tests.protocols.mcp.calls import Answered, servers
from tests.protocols.mcp.programs import good, raw

ASKS = """
def reply(message):
    say(id="q1", method=METHOD, params=PARAMS)
    for line in sys.stdin:
        got = json.loads(line)
        if got.get("id") == "q1":
            break
    text = json.dumps(got.get("result", got.get("error")))
    say(id=message["id"], result={"content": [{"type": "text", "text": text}]})
serve([tool()], reply)
"""
FORM = {
    "mode": "form",
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 3},
            "size": {"type": "string", "enum": ["s", "l"], "default": "s"},
            "copies": {"type": "integer", "minimum": 1},
            "gift": {"type": "boolean"},
        },
        "required": ["city", "copies"],
    },
}


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Servers]:
    found = servers(tmp_path, good(tmp_path), store=tmp_path / "state")
    yield found
    await found.close()


async def asked(folder: Path, method: str, params: object, call: Call, **more: object) -> str:
    """What a server gets as the answer to a request of its own."""
    sample = more.pop("sample", None)
    code = f"METHOD, PARAMS = {method!r}, json.loads({json.dumps(params)!r})\n{ASKS}"
    found = servers(folder, raw(folder, code, **more), sample=sample)  # pyright: ignore[reportArgumentType]
    try:
        return (await found.each["raw"].call("echo", {}, call)).parts[0].text
    finally:
        await found.close()


async def test_what_a_good_server_offers_and_answers(shop: Servers, tmp_path: Path) -> None:
    assert [state.phase for state in shop.listed()] == ["idle"]
    state = await shop.connect("shop")
    assert (state.phase, state.title, state.protocol) == ("ready", "shop", "2026-07-28")
    names = [tool.full_name for tool in state.tools]
    assert names == [f"mcp__shop__{name}" for name in ("price", "picture", "slow", "large", "broken")]
    assert state.instructions == "Ask for prices first."
    assert any("hidden characters" in note for note in state.notes)
    server, call = shop.each["shop"], Answered()
    answer = await server.call("price", {"item": "fish", "count": 2}, call.call)
    assert answer.structured == {"price": 6}
    assert not answer.is_error
    failed = await server.call("broken", {}, call.call)
    assert failed.is_error
    assert "Error executing" in failed.parts[0].text
    assert (await server.read("note://today")).parts[0].text == "Fish on Friday."
    assert (await server.prompt("offer", {"customer": "Ann"})).parts[0].text == "Write an offer for Ann."
    with pytest.raises(McpError, match="10"):
        await server.call("large", {"size": 12_000_000}, call.call)
    assert len((await server.call("large", {"size": 2_000_000}, call.call)).parts[0].text) == 2_000_000

    # Cancelled, it goes on to answer others; progress was shown.
    slow = asyncio.create_task(server.call("slow", {}, call.call))
    await call.reported.wait()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert call.reports == ["first of three (1 of 3)\n"]
    assert (await server.call("price", {"item": "x"}, call.call)).structured == {"price": 3}
    assert "shop is open" in shop.logs("shop")
    with pytest.raises(UsageError, match="no MCP server 'shp'"):
        await shop.connect("shp")

    # Its tools are known in the next session before it is connected to.
    later = servers(tmp_path, *(state.config for state in shop.listed()), store=tmp_path / "state")
    assert [tool.full_name for tool in later.listed()[0].tools] == names
    assert later.listed()[0].cached


async def test_switched_off_untrusted_and_troubled_servers_are_not_started(tmp_path: Path) -> None:
    config = good(tmp_path)
    kept: list[tuple[str, str, bool]] = []
    found = servers(
        tmp_path,
        replace(config, name="off", enabled=False),
        replace(config, name="theirs", trusted=False),
        replace(config, name="wrong", trouble="the environment variable TOKEN is not set"),
        replace(config, name="gone", command=("/no/such/program",)),
    )
    found._host.keep = lambda *each: kept.append(each)  # pyright: ignore[reportPrivateUsage]
    assert [state.phase for state in found.listed()] == ["off", "untrusted", "failed", "idle"]
    for name, words in (("off", "switched off"), ("theirs", "not trusted"), ("wrong", "TOKEN"), ("gone", "not found")):
        with pytest.raises(McpError, match=words):
            await found.connect(name)
    await found.enable("off", on=True)
    assert found.listed()[0].phase == "idle"
    assert kept == [("off", "", True)]
    found.begin()
    await found.settled(0)
    await found.close()


async def test_a_form_is_filled_in_field_by_field(tmp_path: Path) -> None:
    answers: Iterator[str] = iter(["Bo", "Bonn", "", "two", "2", "Yes"])
    call = Answered(lambda question: Reply("text", next(answers)))
    assert json.loads(await asked(tmp_path, "elicitation/create", FORM, call.call)) == {
        "action": "accept",
        "content": {"city": "Bonn", "size": "s", "copies": 2, "gift": True},
    }
    texts = [question.text for question in call.asked]
    assert texts[0].startswith("The MCP server raw asks: Where to?")
    assert "passwords" in texts[0]
    assert "3 characters" in texts[1] or "at least 3" in texts[1]
    assert [option.label for option in call.asked[2].options] == ["s", "l"]


async def test_a_form_can_be_declined_and_no_call_asks_nobody(tmp_path: Path) -> None:
    call = Answered(lambda question: Reply("deny"))
    assert json.loads(await asked(tmp_path, "elicitation/create", FORM, call.call))["action"] == "decline"
    assert len(call.asked) == 1


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("dbPassword", {}),
        ("github_token", {}),
        ("APIKey", {}),
        ("x", {"title": "Your private key"}),
        ("y", {"format": "password"}),
    ],
)
async def test_a_form_that_asks_for_a_secret_is_declined(tmp_path: Path, name: str, field: dict[str, str]) -> None:
    properties = {"city": {"type": "string"}, name: {"type": "string", **field}}
    form = {**FORM, "requestedSchema": {"type": "object", "properties": properties}}
    call = Answered()
    assert json.loads(await asked(tmp_path, "elicitation/create", form, call.call)) == {"action": "decline"}
    assert not call.asked
    assert [name in text for text in call.notices] == [True]


async def test_a_model_is_asked_only_with_consent_and_where_it_is_switched_on(tmp_path: Path) -> None:
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "2+2?"}}], "maxTokens": 10}

    async def sample(system: str, text: str, call: Call) -> tuple[str, str]:
        del system, call
        return f"answer to {text}", "small-1"

    def yes(question: Question) -> Reply:
        assert question.args["text"] == "2+2?"
        assert question.kind == "permission"
        return Reply("once")

    told = await asked(tmp_path, "sampling/createMessage", params, Answered(yes).call, sampling=True, sample=sample)
    assert json.loads(told)["content"]["text"] == "answer to 2+2?"
    no = Answered(lambda question: Reply("deny"))
    told = await asked(tmp_path, "sampling/createMessage", params, no.call, sampling=True, sample=sample)
    assert "declined" in told
    off = Answered()
    told = await asked(tmp_path, "sampling/createMessage", params, off.call, sample=sample)
    assert "not supported" in told
    assert not off.asked


async def test_the_folders_of_the_session_are_roots(tmp_path: Path) -> None:
    told = json.loads(await asked(tmp_path, "roots/list", {}, Answered().call))
    assert told["roots"][0]["uri"] == tmp_path.as_uri()


async def test_two_names_that_look_the_same_stay_apart(tmp_path: Path) -> None:
    config = ServerConfig("my server", url="http://127.0.0.1:1/mcp", transport="http")
    found = servers(tmp_path, config, replace(config, name="my_server"))
    assert [server.part for server in found.each.values()] == ["my_server", "my_server_2"]
    with pytest.raises(McpError, match="refuses connections"):
        await found.connect("my server")
    await found.close()
