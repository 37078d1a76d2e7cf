"""``kill -9`` of the real program: the next start has a valid conversation and all but the unfinished stream."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import Answer, ModelServer
from tests.loopback.replies import Pace
from tests.program import Program

# Four starts of the whole program, each with an SDK: on a busy machine that takes longer than a test may usually.
pytestmark = pytest.mark.timeout(120)


def wire_is_valid(messages: list[dict[str, Any]]) -> bool:
    """Roles alternate from the user's on, and every call is answered in the next message."""
    roles = [message["role"] for message in messages]
    expected = ["user", "assistant"] * len(roles)
    calls = [
        {block["id"] for block in message["content"] if block["type"] == "tool_use"}
        for message in messages
        if message["role"] == "assistant"
    ]
    answers = [
        {block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"}
        for message in messages[2:]
        if message["role"] == "user"
    ]
    return roles == expected[: len(roles)] and calls == answers


def shell_of(word: str) -> psutil.Process:
    """The shell with ``word`` in its command, or what it became. In a sandbox its number is another one than here."""
    for process in psutil.process_iter(["cmdline"]):
        words: list[str] = process.info["cmdline"] or [""]
        if Path(words[0]).name in {"bash", "sleep"} and word in words[-1]:
            return process
    raise AssertionError(f"nothing runs with {word}")


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "work", tmp_path / "home")


def at(ba: Program, server: ModelServer) -> Program:
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k", "BA_MODEL": "anthropic/test"}
    return Program(ba.folder, ba.home, env)


def test_killed_in_a_tool_call(ba: Program):
    os.mkfifo(ba.folder / "started")
    sign = os.open(ba.folder / "started", os.O_RDONLY | os.O_NONBLOCK)
    length = f"600.{os.getpid()}"
    command = f"echo > started; exec sleep {length}"
    call = ScriptedCall("shell", {"command": command})
    with ModelServer([Step(say="I run it.", calls=(call,))]) as server:
        process = at(ba, server).start("-p", "--allow", f"shell({command})", "run the long job")
        assert process.stdout
        ready, _, _ = select.select([sign, process.stdout], [], [], 60)
        os.close(sign)
        assert ready == [sign], process.communicate()
        shell = shell_of(length)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    psutil.wait_procs([shell], timeout=20)
    assert not shell.is_running()

    with ModelServer([Step(say="It was interrupted.")]) as server:
        done = at(ba, server).here("-p", "-c", "--output-format", "json", "what happened?")
    assert json.loads(done.stdout)["result"] == "It was interrupted."
    messages = server.requests[0].json["messages"]
    assert wire_is_valid(messages)
    assert "run the long job" in json.dumps(messages[0])
    assert "I run it." in json.dumps(messages[1])
    assert "nterrupted" in json.dumps(messages[2])


def test_killed_in_a_stream(ba: Program):
    held = Answer(Step(say="These words were on their way when the light went out."), pace=Pace(hold=None, rate=20.0))
    steps = [Step(say="Earlier answer."), held]
    with ModelServer(steps) as server:
        at(ba, server).here("-p", "first question")
        process = at(ba, server).start("-p", "-c", "second question")
        assert server.arrived(2, 60)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with ModelServer([Step(say="Here again.")]) as server:
        done = at(ba, server).here("-p", "-c", "third question")
    assert done.stdout == "Here again.\n"
    messages = server.requests[0].json["messages"]
    assert wire_is_valid(messages)
    said = json.dumps(messages)
    for words in ("first question", "Earlier answer.", "second question", "third question"):
        assert words in said
