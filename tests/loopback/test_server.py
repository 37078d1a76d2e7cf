"""The model server itself: run on its own, held back, and its record of what came in."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import httpx2

from ba_tui.providers.scripted import Step
from tests.loopback import Answer, ModelServer
from tests.loopback.replies import Pace

CHECKOUT = Path(__file__).parents[2]
QUESTION = {"model": "m", "messages": []}


def test_it_runs_on_its_own_with_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("steps:\n  - say: Hello.\nlast: {say: Again.}\n")
    command = [sys.executable, "-m", "tests.loopback", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            with httpx2.Client(base_url=url) as client:
                said = [client.post("/v1/messages", json=QUESTION).json()["content"][0]["text"] for _ in range(3)]
                chosen = client.post("/v1/chat/completions", json=QUESTION).json()["choices"][0]
        finally:
            process.terminate()
    assert said == ["Hello.", "Again.", "Again."]
    assert chosen["message"]["content"] == "Again."


def test_half_an_answer_can_be_held_back() -> None:
    held = threading.Event()
    with ModelServer([Answer(Step(say="word " * 100), pace=Pace(hold=held))]) as server, httpx2.Client() as client:
        body = b""
        with client.stream("POST", f"{server.url}/v1/messages", json={**QUESTION, "stream": True}) as response:
            for data in response.iter_bytes():
                body += data
                if not held.is_set():
                    assert b"message_stop" not in body
                    held.set()
    assert b"message_stop" in body


def test_requests_are_kept_as_they_came() -> None:
    with ModelServer([Step(say="Hello")]) as server, httpx2.Client() as client:
        assert not server.arrived(1, timeout=0)
        client.post(f"{server.url}/v1/messages", json=QUESTION, headers={"x-name": "me"})
        assert client.get(f"{server.url}/v1/models").json()["data"][0]["id"] == "loopback"
        assert client.post(f"{server.url}/v1/messages", json=QUESTION).status_code == 500
        assert server.arrived(2)
    assert server.requests[0].json == QUESTION
    assert server.requests[0].headers["x-name"] == "me"
    assert len(server.requests) == 2
