"""The local provider against a scripted server, with a stand-in for the process that runs llama.cpp."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ba_tui.core.errors import ConnectionLost, ProviderError
from ba_tui.core.messages import Message, user
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.core.tool import Tool
from ba_tui.providers.local_files import LocalPlace, LocalProcesses, check_memory, short_prompt
from ba_tui.providers.local_provider import ANSWER, LocalProvider, call_grammar, call_schema, told_tools
from ba_tui.providers.scripted import Step
from ba_tui.resources import bundled
from ba_tui.settings import LocalSettings
from tests.loopback import ModelServer
from tests.providers.local.test_steps import called as made
from tests.providers.text_calls.tools import NOW, READ, SHELL, TOOLS

STUB = "tests.providers.local.stub:main"
CALL = 'Thought: I read it.\nAction: {"tool": "read_file", "args": {"path": "a.txt"}}'


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[LocalProcesses]:
    made = LocalProcesses(tmp_path, STUB)
    yield made
    made.end()


def model(folder: Path, content: str, window: int = 4_096) -> ModelInfo:
    """A stand-in for a model file, which holds what the stand-in for its process does."""
    file = folder / "tiny.gguf"
    file.write_text(f"GGUF{content}", "utf-8")
    return ModelInfo(f"local:{file}", "local", str(file), window=window, max_output=512, tools="react", known=True)


async def answer(provider: LocalProvider, tools: tuple[Tool, ...] = TOOLS, *, call: bool = True) -> Message:
    system = (bundled("config") / "prompts" / "system.md").read_text("utf-8").strip()
    return await replied(provider, ModelRequest(system, [user("Read a.txt.")], tools, call))


async def replied(provider: LocalProvider, request: ModelRequest) -> Message:
    stream: AsyncIterator[Any] = provider.stream(request)
    *_, last = [chunk async for chunk in stream]
    assert isinstance(last, Message)
    return last


async def test_calls_are_held_to_a_grammar_with_few_tools_and_a_short_prompt(
    tmp_path: Path, processes: LocalProcesses, model_server: Callable[..., ModelServer]
) -> None:
    server = model_server([Step(say=CALL), Step(say="Just words.")])
    info = model(tmp_path, server.openai_url)
    provider = LocalProvider(info, processes, LocalSettings(tools=("shell", "read_file", "gone")))
    provider.connect()
    (call,) = (await answer(provider)).calls
    assert (call.name, call.input) == ("read_file", {"path": "a.txt"})
    assert (await answer(provider, call=False)).text == "Just words."
    await provider.close()
    first, second = (request.json for request in server.requests)
    told = told_tools([SHELL, READ])
    assert first["grammar"] == call_grammar(told, needed=True)
    assert ("grammar" in second, "tools" in first) == (False, False)
    system = first["messages"][0]["content"]
    assert ("shell(command" in system, "now(" in system, "# Figures" in system) == (True, False, False)
    assert "Folder: {cwd}" in system
    assert server.requests[0].headers["authorization"].startswith("Bearer ")


@pytest.mark.parametrize("window", [4_096, 65_536])
async def test_where_only_a_call_is_an_answer_the_grammar_leaves_nothing_else(
    tmp_path: Path, processes: LocalProcesses, model_server: Callable[..., ModelServer], window: int
) -> None:
    server = model_server([Step(say=CALL)])
    provider = LocalProvider(model(tmp_path, server.openai_url, window), processes, LocalSettings())
    await replied(provider, ModelRequest("You make plans.", [user("Hello.")], (READ,), must_call=True))
    await provider.close()
    (sent,) = (request.json for request in server.requests)
    assert "start: thought? call\n" in sent["grammar"]


async def test_a_call_that_succeeded_twice_is_not_made_a_third_time(
    tmp_path: Path, processes: LocalProcesses, model_server: Callable[..., ModelServer]
) -> None:
    server = model_server([Step(say="Final Answer: It is noon.")])
    provider = LocalProvider(model(tmp_path, server.openai_url), processes, LocalSettings(tools=("now",)))
    messages = [user("What time is it?"), *made("now", "12:00"), *made("now", "12:00")]
    reply = await replied(provider, ModelRequest("", messages, (NOW,)))
    await provider.close()
    assert server.requests[0].json["grammar"] == ANSWER
    assert reply.text == "It is noon."


async def test_a_killed_process_is_told_and_the_next_request_starts_another(
    tmp_path: Path, processes: LocalProcesses, model_server: Callable[..., ModelServer]
) -> None:
    server = model_server([Step(say="Final Answer: one"), Step(say="Final Answer: two")])
    info = model(tmp_path, server.openai_url)
    provider = LocalProvider(info, processes, LocalSettings())
    await answer(provider)
    place = LocalPlace(Path(info.name), info.window)
    first = await processes.load(place)

    async def broken() -> None:
        async with processes.watched(place):
            os.kill(int(first.key), signal.SIGKILL)
            raise ConnectionLost("The connection broke.")

    with pytest.raises(ConnectionLost, match=r"The process of tiny.gguf was killed, perhaps because memory ran out."):
        await broken()
    assert (await answer(provider)).text == "two"
    assert (await processes.load(place)).key != first.key
    await provider.close()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("unloadable", "llama.cpp can't load tiny.gguf: Failed to init server"),
        ("killed", "The process of tiny.gguf was killed, perhaps because memory ran out."),
    ],
)
async def test_a_model_that_can_not_be_loaded_is_told_in_one_line(
    tmp_path: Path, processes: LocalProcesses, content: str, line: str
) -> None:
    provider = LocalProvider(model(tmp_path, content), processes, LocalSettings())
    with pytest.raises(ProviderError) as caught:
        await answer(provider)
    await provider.close()
    assert str(caught.value) == line
    assert caught.value.hint


def test_a_file_larger_than_the_free_memory_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "huge.gguf"
    with file.open("wb") as large:
        large.truncate(1 << 42)
    if not Path("/proc/meminfo").exists():
        pytest.skip("this system does not tell how much memory is free")
    with pytest.raises(ProviderError, match=r"huge.gguf needs more than 4398.0 GB of memory"):
        check_memory(LocalPlace(file, 4_096))


async def test_a_model_that_nobody_uses_any_more_gives_its_memory_back(
    tmp_path: Path, processes: LocalProcesses, model_server: Callable[..., ModelServer]
) -> None:
    info = model(tmp_path, model_server([]).openai_url)
    one, two = LocalPlace(Path(info.name), 1_024), LocalPlace(Path(info.name), 2_048)
    processes.enter(one)
    address = await processes.load(one)
    processes.leave(one)
    assert await processes.load(one) == address
    processes.enter(two)
    assert (await processes.load(one)).key != address.key


def test_the_grammar_lets_through_what_the_schemas_do() -> None:
    schema = Draft202012Validator(call_schema([READ, NOW]))
    good = [{"tool": "read_file", "args": {"path": "a", "limit": 3}}, {"tool": "now", "args": {}}]
    bad: list[Any] = [
        {"tool": "shell", "args": {"command": "ls"}},
        {"tool": "read_file", "args": {}},
        {"tool": "read_file", "args": {"path": "a", "line": 3}},
        {"tool": "read_file", "args": {"path": 3}},
        {"tool": "read_file"},
    ]
    assert [schema.is_valid(each) for each in (*good, *bad)] == [True] * 2 + [False] * 5


def test_a_prompt_of_the_persons_own_is_not_shortened() -> None:
    assert short_prompt("You are a pirate.") == "You are a pirate."


async def test_llama_cpp_keeps_to_the_grammar(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = os.environ.get("BA_TEST_MODEL", "")
    if not path:
        pytest.skip("BA_TEST_MODEL names no model file")
    info = ModelInfo(f"local:{path}", "local", path, window=2_048, max_output=64, tools="react", known=True)
    processes = LocalProcesses(tmp_path)
    provider = LocalProvider(info, processes, LocalSettings(threads=1, tools=("now",)), {"temperature": 0})
    reply = await answer(provider)
    await provider.close()
    processes.end()
    assert [call.name for call in reply.calls] == ["now"] or reply.text
