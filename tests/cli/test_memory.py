"""``ba memory``: data on stdout, narration on stderr, nothing forgotten by mistake, nothing lost between two homes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.cli.main import run
from ba_tui.core.ports.memory import Entry
from ba_tui.feature import CheckContext
from ba_tui.features.memory.checks import memory_checks
from ba_tui.features.memory.engine.setup import StoreSetup
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.features.memory.tui.browser import entry_page, entry_row
from ba_tui.permissions.session import settings_of
from ba_tui.resources import folder_slug, places, project_root

ENTRIES = (
    Entry("m001aaa", "The fiscal year begins in January", subject="company", attribute="year", project="p", at=1_000),
    Entry("m001bbb", "The fiscal year begins in April", project="p", at=1_795_000_000, supersedes="m001aaa"),
    Entry("m002ccc", "Answer in [bold]British[/bold] \x1b[31mEnglish", "preference", pinned=True, at=1_795_000_100),
)

Ba = Callable[..., tuple[int, str, str]]


def keep(folder: Path, *entries: Entry) -> None:
    """Store ``entries`` for the project of ``folder``, without a helper."""

    async def add() -> None:
        slug = folder_slug(project_root(folder))
        store = MemoryStore(places().memory, slug, StoreSetup(embedder="off"))
        await store.add(entries)
        await store.close()

    asyncio.run(add())


@pytest.fixture
def ba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ba_home: Path, capfd: pytest.CaptureFixture[str]) -> Ba:
    """Runs ``ba memory …`` in a project with three entries, without an embedder."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("COLUMNS", "100")
    (ba_home / "config.yaml").write_text("memory:\n  embedder: off\n")
    keep(Path.cwd(), *ENTRIES)

    def invoke(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(["memory", *args])
        out, err = capfd.readouterr()
        return code, out, err

    return invoke


def test_entries_are_listed_found_and_shown(ba: Ba, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = ba("list")
    rows = out.splitlines()
    assert (code, err) == (0, "")
    assert rows[0].split() == ["Id", "Memory", "Kind", "Scope", "State", "Stored"]
    assert [row.split()[0] for row in rows[1:]] == ["m002ccc", "m001bbb", "m001aaa"]
    assert "[bold]British[/bold] English" in rows[1]
    assert "pinned" in rows[1]
    assert "replaced" in rows[3]
    assert "m002ccc" not in ba("list", "--project")[1]
    assert [each["id"] for each in json.loads(ba("list", "--global", "--json")[1])] == ["m002ccc"]
    assert "more" in ba("list", "--limit", "1")[2]
    code, out, err = ba("search", "fiscal", "year", "--json")
    assert {each["id"] for each in json.loads(out)} == {"m001aaa", "m001bbb"}
    assert json.loads(out)[0]["why"]
    code, out, err = ba("show", "m001b")
    assert "The fiscal year begins in April" in out
    assert "Before (m001aaa):\nThe fiscal year begins in January" in out
    assert "Stored        2026-11-18" in out
    shown = json.loads(ba("show", "m001b", "--json")[1])
    assert shown["history"][0]["subject"] == "company"
    assert "exclude each other" in ba("list", "--project", "--global")[2]
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert "m001" not in ba("list")[1]
    keep(other, Entry("m003ddd", "Tests run with make check", project="q", at=1.0))
    code, out, _ = ba("list", "--all-projects")
    assert {row.split()[0] for row in out.splitlines()[1:]} == {"m001aaa", "m001bbb", "m002ccc", "m003ddd"}
    assert "m001bbb" in ba("search", "fiscal", "--all-projects")[1]


def test_entries_are_edited_and_forgotten(ba: Ba, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    assert ba("edit", "m001b", "The fiscal year begins in May")[:2] == (0, "m001bbb\n")
    assert "begins in May" in ba("show", "m001bbb")[1]
    assert "There is no terminal and no EDITOR." in ba("edit", "m001b")[2]
    monkeypatch.setenv("EDITOR", "sed -i s/May/June/")
    assert "“The fiscal year begins in June”" in ba("edit", "m001b")[2]
    code, _, err = ba("edit", "m001b", "key " + "sk-ant-" + "api03-" + "a1B2" * 24)
    assert code == 2
    assert "holds a secret" in err
    code, out, err = ba("forget", "m001b")
    assert (code, out) == (1, "")
    assert "Add --yes" in err
    code, _, err = ba("forget", "m001", "--yes")
    assert code == 1
    assert "beginning of 2 ids: m001" in err
    assert "There is no memory 'mzz'" in ba("show", "mzz")[2]
    assert ba("forget", "m001b", "m002ccc", "--yes") == (0, "m001bbb\nm002ccc\n", "ba: Forgot 2 memories.\n")
    assert [row.split()[0] for row in ba("list")[1].splitlines()[1:]] == ["m001aaa"]
    log = b"".join(path.read_bytes() for path in places().memory.rglob("log.jsonl"))
    assert b"April" not in log


def test_an_export_is_read_again_in_another_home(ba: Ba, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ba("export", "-o", str(tmp_path / "all.jsonl"))[2].startswith("ba: Exported 3 entries to ")
    assert ba("export")[1] == (tmp_path / "all.jsonl").read_text()
    before = json.loads(ba("list", "--json")[1])
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("BA_HOME", str(tmp_path / "home"))
    assert ba("list") == (0, "", "ba: Nothing is remembered yet. In the app, type “# TEXT”.\n")
    with (tmp_path / "all.jsonl").open("a") as file:
        file.write("no JSON\n")
    err = ba("import", str(tmp_path / "all.jsonl"))[2]
    assert "Imported 3 entries; 0 known already." in err
    assert "1 line of" in err
    after = json.loads(ba("list", "--json")[1])
    for each in (*before, *after):
        each.pop("project")
    assert after == before
    assert json.loads(ba("import", str(tmp_path / "all.jsonl"), "--json")[1]) == {"new": 0, "known": 3, "bad": 1}
    assert "cannot be read" in ba("import", "nowhere.jsonl")[2]


def test_a_file_with_a_secret_is_not_imported(ba: Ba, tmp_path: Path) -> None:
    file, key = tmp_path / "all.jsonl", "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    ba("export", "-o", str(file))
    file.write_text(file.read_text().replace("April", key).replace('"m00', '"n00'))
    code, _, err = ba("import", str(file))
    assert code == 2
    assert "Nothing is imported: line " in err
    assert key not in err
    assert len(json.loads(ba("list", "--json")[1])) == 3


def test_the_index_is_rebuilt_and_damage_is_counted(ba: Ba) -> None:
    log = next(path for path in places().memory.rglob("log.jsonl") if "projects" in path.parts)
    with log.open("a") as file:
        file.write("{broken\n")
    for index in places().memory.rglob("words.sqlite*"):
        index.unlink()
    assert ba("rebuild")[2].endswith("ba: The index holds 3 entries.\n")
    code, out, _ = ba("stats")
    assert code == 0
    assert "Entries       2 of the project, 1 global" in out
    assert "1 line, kept aside" in out
    assert str(places().memory) in out
    told = json.loads(ba("stats", "--json")[1])["projects"][0]
    assert (told["skipped"], told["kinds"], told["pinned"], told["replaced"]) == (1, {"preference": 1, "fact": 2}, 1, 1)
    assert "1 line of the log cannot be read" in ba("list")[2]
    here = Path.cwd()
    found = list(memory_checks(CheckContext(settings_of(here, places()), places(), here, here, lambda _: True)))
    assert [(each.state, each.name) for each in found] == [("ok", "memory"), ("warn", "memory")]
    assert found[0].text.endswith("searched by words, as memory.embedder is off")
    assert "1 line of the log cannot be read" in found[1].text


def test_a_folder_that_cannot_be_written_is_one_line(ba: Ba, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ba("export", "-o", str(tmp_path / "all.jsonl"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("BA_HOME", str(home))
    places().memory.parent.mkdir(parents=True, exist_ok=True)
    places().memory.write_text("a file where the folder should be")
    code, _, err = ba("import", str(tmp_path / "all.jsonl"))
    assert code == 2
    assert len(err.splitlines()) == 1
    assert str(places().memory) in err


def test_entries_of_a_team_server_are_shown_with_it(ba: Ba) -> None:
    theirs = Entry(
        "m009eee", "Deploys happen on Thursday", project="p", origin="import", at=1_795_000_000,
        speaker="Omar", server="memory.example.org, project sales",
    )  # fmt: skip
    keep(Path.cwd(), theirs)
    for command in (("list",), ("search", "deploys")):
        code, out, _ = ba(*command)
        assert code == 0
        assert "memory.example.org, project sales" in next(line for line in out.splitlines() if "Thursday" in line)
    assert "Omar, team server memory.example.org, project sales" in ba("show", "m009eee")[1]
    assert json.loads(ba("show", "m009eee", "--json")[1])["server"] == "memory.example.org, project sales"
    rows = "\n".join((entry_row(theirs, now=0.0).below, entry_page(theirs, (), None))).replace("\\", "")
    assert rows.count("team server memory.example.org, project sales") == 2
    assert "by Omar" in rows
