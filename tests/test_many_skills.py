"""With hundreds of skills a first request stays small, and the right one is found all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Notice, ToolFinished
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect
from tests.skills.world import put


async def test_a_first_request_with_500_skills_has_less_than_16_kb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".claude" / "skills"
    for number in range(500):
        put(folder, f"some-skill-{number:03}", description=f"Does work number {number} of many. " * 8)
    put(folder, "zz-invoices", description="Reads invoices from suppliers and books them in the ledger.")
    trust_folder(tmp_path)
    search = Step(calls=(ScriptedCall("tool_search", {"query": "invoices ledger"}),))
    with ModelServer([search], last=Step(say="Done.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/gpt-oss"}, tmp_path).library.create()
        events = await collect(talk.say("Book the invoices in the ledger"))
        await collect(talk.say("And more invoices for the ledger"))
        await talk.close()
    first, _, third = (request.body for request in server.requests)
    assert len(first) <= 16_000
    assert first.count(b"zz-invoices: Reads invoices from suppliers") == 1, "it fits the prompt"
    assert third.count(b"Skills that may fit what is asked") == 1, "it is not said again"
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.text.startswith("Your skills are many: the model sees the descriptions of 501 shortened")
    (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
    found = json.loads(result.text)
    assert "zz-invoices" in [each.get("skill") for each in found]
