"""What a helper that does not answer costs a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.features.memory.tools.storing import LATE, EntryWriter, Owner
from tests.remembering.world import FISCAL


async def test_words_answer_when_the_helper_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_tui.features.memory.engine.helper_process.ENTRY", "tests.memory.broken_helper:silent")
    store = MemoryStore(tmp_path / "memory", "books")
    storing = EntryWriter(lambda: store, lambda: True, Owner("books"))
    await store.add([Entry("m-1", FISCAL, project="books")])
    assert await store.helper.started()
    found = await storing.search("When does our fiscal year start?", 5)
    assert (found.step, found.why) == ("words", LATE)
    assert [hit.entry.text for hit in found.hits] == [FISCAL]
    # The helper may only be busy: it goes on.
    assert store.helper.ready
    await storing.close()
