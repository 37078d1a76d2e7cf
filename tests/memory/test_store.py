"""The store without its helper: what is written, found by words, removed, kept within limits, and survives damage."""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.features.memory.engine.recall import SearchRequest
from ba_tui.features.memory.engine.setup import StoreSetup, setup_of
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.settings.sections.data import MemorySettings
from tests.memory.entries import NOW, PROJECT, entry

WORDS = StoreSetup(embedder="off")
DAY = 86_400.0
OFF = "Memory is searched by words: memory.embedder is off."


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(tmp_path / "memory", PROJECT, WORDS, lambda: NOW)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "projects" / PROJECT / "log.jsonl"


async def found(store: MemoryStore, text: str) -> list[str]:
    return [hit.entry.text for hit in (await store.search(SearchRequest(text, explicit=True))).hits]


async def test_nothing_is_made_before_the_first_entry(store: MemoryStore, tmp_path: Path) -> None:
    assert (await store.search(SearchRequest("anything", explicit=True))).hits == ()
    assert await store.listed() == []
    assert await store.forget(["m1"]) == 0
    assert (await store.state()).entries == 0
    await store.sync()
    assert not (tmp_path / "memory").exists()


async def test_entries_are_found_by_words_and_each_on_its_shelf(store: MemoryStore, tmp_path: Path) -> None:
    await store.add([entry("The fiscal year starts in April"), entry("I prefer tabs", project="")])
    assert await found(store, "fiscal year") == ["The fiscal year starts in April"]
    assert [each.text for each in await store.listed("global")] == ["I prefer tabs"]
    other = MemoryStore(tmp_path / "memory", "other-2", WORDS)
    assert await found(other, "When does the fiscal year start, with tabs?") == ["I prefer tabs"]


async def test_a_search_by_words_says_why_once(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    await store.add([entry("The fiscal year starts in April")])
    for _ in range(3):
        answer = await store.search(SearchRequest("When does the fiscal year start?"))
        assert (answer.step, answer.why) == ("words", OFF)
    assert len([each for each in caplog.records if "memory.embedder is off" in each.message]) == 1
    assert (await store.state()).why == OFF


async def test_files_are_for_their_owner_alone(store: MemoryStore, tmp_path: Path) -> None:
    await store.add([entry("a secretless fact")])
    await found(store, "fact")
    for path in (tmp_path / "memory").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_forgetting_leaves_no_trace_and_keeps_the_index(store: MemoryStore, log: Path) -> None:
    kept, gone = entry("Deploys happen on Thursday"), entry("The zebra is called Wenzeslaus")
    await store.add([gone, kept])
    await store.change(gone.id, text="The zebra is called Ottokar")
    assert await found(store, "zebra") == ["The zebra is called Ottokar"]
    assert await store.forget([gone.id, "m-unknown"]) == 1
    assert await found(store, "zebra Ottokar") != ["The zebra is called Ottokar"]
    assert await store.get([gone.id]) == {}
    for path in log.parent.iterdir():
        assert not any(word in path.read_bytes().lower() for word in (b"wenzeslaus", b"ottokar")), path
    again = MemoryStore(log.parents[2], PROJECT, WORDS)
    assert [each.text for each in await again.listed()] == [kept.text]


async def test_what_was_forgotten_can_be_stored_again(store: MemoryStore) -> None:
    fact = entry("We use British spelling", superseded_by="m-newer", pinned=True)
    await store.add([fact])
    await store.forget([fact.id])
    await store.add([fact])
    assert await store.get([fact.id]) == {fact.id: fact}


async def test_a_newer_fact_supersedes_and_both_stay(store: MemoryStore) -> None:
    old = entry("The editor is vim", subject="person", attribute="editor")
    new = entry("The editor is emacs", subject="Person", attribute=" EDITOR ", supersedes=old.id)
    await store.add([old])
    await store.add([new])
    assert await store.slot("person", "editor") == new
    assert [each.text for each in await store.history(new.id)] == [new.text, old.text]
    assert (await store.get([old.id]))[old.id].superseded_by == new.id
    assert await store.slot("person", "") is None


async def test_an_entry_becomes_global(store: MemoryStore) -> None:
    fact = entry("Amounts are in euros")
    await store.add([fact])
    assert (await store.change(fact.id, project="")).project == ""
    assert await store.listed("project") == []
    assert [each.id for each in await store.listed("global")] == [fact.id]


async def test_use_and_pins_are_remembered(store: MemoryStore) -> None:
    fact, other = entry("Amounts are in euros"), entry("Taxes are included", at=NOW + 1)
    await store.add([fact, other])
    await store.mark_used([fact.id], NOW + 5)
    await store.change(fact.id, pinned=True)
    first = (await store.listed())[0]
    assert (first.id, first.used, first.last_used) == (fact.id, 1, NOW + 5)
    assert [each.id for each in await store.pinned()] == [fact.id]
    assert [each.id for each in await store.listed(offset=1)] == [other.id]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no text to remember."),
        (" \n\0 ", "There is no text to remember."),
        ("\ud800", "There is no text to remember."),
        ("x" * 1_000_000, "The text has 1,000,000 characters; a memory holds up to 20,000."),
    ],
)
async def test_a_text_that_cannot_be_kept_is_refused(store: MemoryStore, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        await store.add([entry("good"), entry(text)])
    assert str(error.value) == said
    assert await store.listed() == []


async def test_odd_characters_are_kept_as_text(store: MemoryStore) -> None:
    await store.add([entry("odd \0 and \ud83d half", speaker="a\0b"), entry("财年从四月开始")])
    assert await found(store, "odd half") == ["odd \ufffd and \ufffd half"]
    assert (await found(store, "财年什么时候开始"))[0] == "财年从四月开始"


async def test_bad_lines_are_skipped_counted_and_kept_aside(store: MemoryStore, log: Path) -> None:
    await store.add([entry("one")])
    with log.open("ab") as file:
        file.write(b'not json\n{"v":1,"op":"add","id":"m5"}\n{"v":9,"op":"add","id":"m9","text":"later"}\n{"half')
    await store.add([entry("two")])
    assert {each.text for each in await store.listed()} == {"one", "two"}
    assert (await store.state()).skipped == 3
    await store.sync()
    assert log.with_suffix(".rejected.jsonl").read_bytes() == b'not json\n{"v":1,"op":"add","id":"m5"}\n{"half\n'
    assert b"not json" not in log.read_bytes()
    assert b'"text":"later"' in log.read_bytes()
    assert (await store.state()).skipped == 3
    await store.rebuild()
    assert (await store.state()).skipped == 3
    assert {each.text for each in await store.listed()} == {"one", "two"}


async def test_a_broken_or_deleted_index_costs_nothing(store: MemoryStore, log: Path) -> None:
    await store.add([entry("The fiscal year starts in April")])
    await found(store, "fiscal")
    index = log.with_name("words.sqlite")
    for damage in (lambda: index.unlink(), lambda: index.write_bytes(b"nonsense" * 1_000)):
        damage()
        again = MemoryStore(log.parents[2], PROJECT, WORDS)
        assert await found(again, "fiscal year") == ["The fiscal year starts in April"]


async def test_an_expired_entry_goes_and_a_used_or_pinned_one_stays(tmp_path: Path) -> None:
    setup = StoreSetup("off", expiry={"summary": 10 * DAY})
    store = MemoryStore(tmp_path, PROJECT, setup, lambda: NOW)
    old = NOW - 20 * DAY
    used = entry("used", kind="summary", at=old)
    await store.add([
        entry("old", kind="summary", at=old), used, entry("pinned", kind="summary", at=old, pinned=True),
        entry("a fact", at=old), entry("new", kind="summary", at=NOW - DAY),
    ])  # fmt: skip
    await store.mark_used([used.id], NOW - DAY)
    await store.sync()
    assert {each.text for each in await store.listed()} == {"used", "pinned", "a fact", "new"}


async def test_a_clock_that_is_wrong_lets_nothing_expire(tmp_path: Path) -> None:
    setup = StoreSetup("off", expiry={"summary": 10 * DAY})
    for year, clock in (("ahead", NOW + 9_000 * DAY), ("behind", 0.0)):
        store = MemoryStore(tmp_path / year, PROJECT, setup, lambda clock=clock: clock)
        await store.add([entry("a summary", kind="summary"), entry("an older one", kind="summary", at=NOW - DAY)])
        await store.sync()
        assert len(await store.listed()) == 2


async def test_beyond_the_limit_what_is_of_least_use_goes(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, PROJECT, StoreSetup("off", most=100), lambda: NOW)
    plain = [entry(f"plain {number}", at=NOW - 400 * DAY) for number in range(98)]
    kept = [entry("important", importance=1.0, at=NOW - 300 * DAY), entry("used", at=NOW - 400 * DAY), entry("new")]
    pinned = entry("pinned", importance=0.0, at=NOW - 4_000 * DAY, pinned=True)
    await store.add([*plain, *kept, pinned])
    await store.mark_used([kept[1].id], NOW - DAY)
    await store.sync()
    left = {each.text for each in await store.listed(limit=1_000)}
    assert len(left) == 95
    assert {"important", "used", "new", "pinned"} <= left


async def test_a_log_that_is_mostly_forgotten_gets_smaller(store: MemoryStore, log: Path) -> None:
    facts = [entry(f"{number} {'x' * 15_000}") for number in range(100)]
    await store.add(facts)
    await store.forget([fact.id for fact in facts[1:]])
    assert log.stat().st_size > 1_000_000
    await store.sync()
    assert log.stat().st_size < 100_000
    assert [each.id for each in await store.listed()] == [facts[0].id]


async def test_export_and_import_keep_everything(store: MemoryStore, tmp_path: Path, log: Path) -> None:
    old = entry("The editor is vim", subject="person", attribute="editor", speaker="Ines", sequence=3)
    new = entry("The editor is emacs", subject="person", attribute="editor", supersedes=old.id, importance=0.9)
    everywhere = entry("I prefer tabs", project="", kind="preference", pinned=True)
    await store.add([old, new, everywhere])
    await store.mark_used([old.id], NOW)
    with log.open("ab") as file:
        file.write(b'{"v":9,"op":"add","id":"m9","text":"later"}\n')
    file_ = tmp_path / "memory.jsonl"
    assert await store.export(file_) == 4
    assert stat.S_IMODE(file_.stat().st_mode) == 0o600

    other = MemoryStore(tmp_path / "other", PROJECT, WORDS)
    taken = await other.import_(file_)
    assert (taken.new, taken.known, taken.bad) == (4, 0, 0)
    ids = [old.id, new.id, everywhere.id]
    assert await other.get(ids) == await store.get(ids)
    taken = await other.import_(file_)
    assert (taken.new, taken.known, taken.bad) == (0, 4, 0)
    copy = tmp_path / "again.jsonl"
    await other.export(copy)
    assert copy.read_bytes() == file_.read_bytes()


async def test_an_import_takes_what_it_can(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    lines = [
        '{"id":"m1","text":"plain","project":"elsewhere"}',
        "nonsense",
        "[1]",
        '{"id":"m2"}',
        '{"id":"m1","text":"x"}',
    ]
    file.write_text("\n".join(lines))
    taken = await store.import_(file)
    assert (taken.new, taken.known, taken.bad) == (1, 1, 3)
    assert (await store.get(["m1"]))["m1"].project == PROJECT
    with pytest.raises(UsageError, match="cannot be read"):
        await store.import_(tmp_path / "missing.jsonl")


async def test_unknown_ids_are_told(store: MemoryStore) -> None:
    with pytest.raises(UsageError, match="There is no memory m-none"):
        await store.change("m-none", text="x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_read_only_folder_is_told_and_read(store: MemoryStore, log: Path) -> None:
    await store.add([entry("The fiscal year starts in April")])
    log.chmod(0o400)
    log.parent.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="cannot be written"):
            await store.add([entry("more")])
        again = MemoryStore(log.parents[2], PROJECT, WORDS)
        assert await found(again, "fiscal year") == ["The fiscal year starts in April"]
    finally:
        log.parent.chmod(0o700)
        log.chmod(0o600)


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file")
    store = MemoryStore(tmp_path / "memory", PROJECT, WORDS)
    with pytest.raises(StorageError) as error:
        await store.add([entry("a fact")])
    assert "BA_HOME" in error.value.hint


@pytest.fixture
async def full_disk(store: MemoryStore, log: Path) -> AsyncIterator[MemoryStore]:
    """A store whose log cannot grow any more: the limit of file sizes stands for the end of the disk."""
    await store.add([entry("first")])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 50, hard))
    yield store
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_loses_nothing_that_was_stored(full_disk: MemoryStore, log: Path) -> None:
    before = log.read_bytes()
    with pytest.raises(StorageError) as error:
        await full_disk.add([entry("second " * 50)])
    assert os.strerror(errno.EFBIG) in str(error.value)
    assert log.read_bytes() == before


async def test_many_duplicates_are_one_answer(store: MemoryStore) -> None:
    await store.add([entry("The fiscal year starts in April", at=NOW + number) for number in range(2_000)])
    answer = await store.search(SearchRequest("When does the fiscal year start?", explicit=True))
    assert len(answer.hits) == 1
    assert len(await store.same("the fiscal year: starts in april!")) == 2_000


def test_the_settings_become_a_setup() -> None:
    given = MemorySettings(embedder="e5", url="http://127.0.0.1:8000", api_key_env="CHROMA_TOKEN", project="shop")
    setup = setup_of(given, PROJECT, lambda name: {"CHROMA_TOKEN": " token-1 "}[name])
    assert setup.server is not None
    assert (setup.server.project, setup.server.token) == ("shop", "token-1")
    assert "token-1" not in repr(setup)
    assert setup.expiry == {"summary": 365 * DAY, "outcome": 365 * DAY, "turn": 365 * DAY}
    assert setup_of(MemorySettings(), PROJECT, lambda name: name).server is None


async def test_a_change_of_the_log_by_hand_is_read(store: MemoryStore, log: Path) -> None:
    await store.add([entry("The fiscal year starts in April")])
    await found(store, "fiscal")
    record = json.loads(log.read_text().splitlines()[1])
    log.write_text(json.dumps({**record, "text": "The fiscal year starts in July"}) + "\n")
    assert await found(store, "fiscal year") == ["The fiscal year starts in July"]


def test_the_process_of_the_app_loads_no_numpy_and_no_chroma() -> None:
    loaded = "{'numpy', 'chromadb', 'asyncio.events'} & set(sys.modules)"
    program = f"import ba_tui.features.memory.engine.store, sys; print({loaded})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "{'asyncio.events'}"
