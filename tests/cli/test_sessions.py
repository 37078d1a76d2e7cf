"""``ba sessions``: data on stdout, narration on stderr, ids only, nothing deleted by mistake."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from ba_tui.cli.main import run
from ba_tui.cli.sessions import app, session_table
from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Titled, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.services import begin
from ba_tui.core.start import Start
from ba_tui.resources import folder_slug
from tests.sessions.shelf import library, stored, turn

A, B, C = "20261121-120000-ab12", "20261121-130000-cd34", "20261122-090000-ef56"
CHECKOUT = Path(__file__).resolve().parents[2]

Ba = Callable[..., Result]


@pytest.fixture
def ba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ba:
    """Runs ``ba sessions …`` over three sessions, the last of another folder."""
    monkeypatch.setenv("COLUMNS", "100")
    stored(tmp_path, A, [*turn("Count the rows"), *turn("And the columns", cost=None)])
    stored(tmp_path, B, [*turn("Plot [bold]sales[/bold] \x1b[31mred", at=1_795_000_000), TurnStarted(user("More"))])
    stored(tmp_path, C, turn("Elsewhere"), Path("/srv/oth\x1b[31mer"))
    shelf = library(tmp_path)

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(app, args, obj=shelf)

    return invoke


def test_list_shows_this_folder_newest_first(ba: Ba) -> None:
    result = ba("list")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["Id", "Title", "Used", "Turns", "Cost"]
    assert lines[1].startswith(f"{B}  Plot [bold]sales[/bold] red")
    assert lines[2].startswith(f"{A}  Count the rows")
    assert lines[2].split()[-2:] == ["2", "—"]
    assert "\x1b" not in ba("list", "--all").stdout
    assert C in ba("list", "--all").stdout


@pytest.mark.parametrize(("width", "folders"), [(80, False), (80, True), (200, True)])
def test_a_session_is_one_line_whatever_its_title(width: int, folders: bool) -> None:
    infos = [
        SessionInfo(A, "A title that goes on and on, and on again as long as it can", Path("/srv/" + "x/" * 30), 0, 0),
        SessionInfo(B, "Short", Path("/srv"), 0, 0),
    ]
    said = io.StringIO()
    Console(file=said, width=width).print(session_table(infos, everywhere=folders, width=width))
    lines = said.getvalue().splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    assert ("…" in lines[1]) == (width < 200 or folders)
    assert "Short" in lines[2]


def test_a_list_for_a_file_is_whole(ba: Ba) -> None:
    ba("rename", A, "word " * 30)
    assert ("word " * 30).strip() in ba("list").stdout


def test_list_as_json(ba: Ba) -> None:
    records = json.loads(ba("list", "--json", "--all").stdout)
    assert {record["id"] for record in records} == {A, B, C}
    assert records[0]["id"] == B
    first = next(record for record in records if record["id"] == A)
    assert (first["title"], first["turns"], first["cost_usd"], first["cwd"]) == (
        "Count the rows",
        2,
        None,
        "/srv/project",
    )


def test_an_empty_list_says_so_on_stderr(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["list"], obj=library(tmp_path))
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "--all" in result.stderr
    assert json.loads(CliRunner().invoke(app, ["list", "--json"], obj=library(tmp_path)).stdout) == []


def test_a_folder_of_sessions_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "sessions").touch()
    shelf = library(tmp_path)
    for args in (["list"], ["list", "--all"], ["search", "x"], ["show", A]):
        error = CliRunner().invoke(app, args, obj=shelf).exception
        assert isinstance(error, StorageError), args
        assert "can't be read: Not a directory" in str(error)
    with pytest.raises(StorageError, match="can't be read"):
        begin(shelf, Start(resume="last"))
    assert shelf.create().id


def test_show_tells_facts_and_turns(ba: Ba) -> None:
    text = ba("show", "ab12").stdout
    assert "/srv/project" in text
    assert "And the columns" in text
    assert "interrupted" in ba("show", B).stdout
    record = json.loads(ba("show", A, "--json").stdout)
    assert [item["prompt"] for item in record["turns"]] == ["Count the rows", "And the columns"]
    assert record["usage"]["input"] == 40


def test_export_goes_to_stdout_or_a_file(ba: Ba, tmp_path: Path) -> None:
    assert ba("export", A).stdout.startswith("# Count the rows\n")
    assert json.loads(ba("export", A, "--format", "json").stdout)["session"]["id"] == A
    target = tmp_path / "out.md"
    result = ba("export", A, "-o", str(target))
    assert (result.stdout, result.stderr) == ("", f"Wrote {target}.\n")
    assert target.read_text().startswith("# Count the rows\n")
    assert target.stat().st_mode & 0o077 == 0
    assert ba("export", A, "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()
    for args in ((A, "-o", str(tmp_path)), (A, "--format", "pdf"), ("rows",)):
        assert isinstance(ba("export", *args).exception, UsageError)


def test_rename_and_fork(ba: Ba) -> None:
    assert ba("rename", A, "Rows").stderr == "Renamed.\n"
    assert json.loads(ba("show", A, "--json").stdout)["title"] == "Rows"
    result = ba("fork", A, "--upto", "1")
    copied = result.stdout.strip()
    assert f"ba --resume {copied}" in result.stderr
    record = json.loads(ba("show", copied, "--json").stdout)
    assert (record["title"], record["turns"][0]["prompt"], len(record["turns"])) == ("Rows (fork)", "Count the rows", 1)
    refused = ba("fork", A, "--upto", "9")
    assert isinstance(refused.exception, UsageError)
    assert "2 turns" in str(refused.exception)


def test_delete_needs_a_yes_and_an_id(ba: Ba) -> None:
    asked = ba("delete", A)
    assert isinstance(asked.exception, UsageError)
    assert asked.exception.hint == "Add --yes."
    for key in ("rows", "20261121", "nothing"):
        assert isinstance(ba("delete", key, "--yes").exception, UsageError)
    ba("rename", A, "About 20261121")
    assert isinstance(ba("delete", "20261121", "--yes").exception, UsageError)
    assert len(json.loads(ba("list", "--json").stdout)) == 2
    assert ba("delete", A, "--yes").stderr == f"Deleted {A}.\n"
    assert [record["id"] for record in json.loads(ba("list", "--json").stdout)] == [B]


@pytest.mark.parametrize("kind", ["pipe", "loop"])
def test_what_cannot_be_read_can_be_deleted(tmp_path: Path, kind: str) -> None:
    file = stored(tmp_path, A, turn("Count the rows"))
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(file)
    shelf = library(tmp_path)
    asked = CliRunner().invoke(app, ["delete", A], obj=shelf)
    assert isinstance(asked.exception, UsageError)
    assert "cannot be read" in asked.stderr
    assert CliRunner().invoke(app, ["delete", A, "--yes"], obj=shelf).stderr == f"Deleted {A}.\n"
    assert not file.parent.exists()


@pytest.mark.parametrize(("answer", "left"), [("n", True), ("y", False)])
def test_delete_asks_on_a_terminal(tmp_path: Path, answer: str, left: bool) -> None:
    file = stored(tmp_path, A, turn("Count the rows"))
    code = (
        "from pathlib import Path; from ba_tui.cli.sessions import app; from tests.sessions.shelf import library;"
        f"app(['delete', 'ab12'], obj=library(Path({str(tmp_path)!r})))"
    )
    child = pexpect.spawn(sys.executable, ["-c", code], cwd=str(CHECKOUT), encoding="utf-8", timeout=20)
    child.expect("Delete “Count the rows” .*1 turn")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert file.exists() is left


def test_errors_are_one_line_with_the_cure_and_exit_1(
    ba_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(ba_home, A, [*turn("Count the rows"), Titled("Rows")], tmp_path)
    assert (ba_home / "sessions" / folder_slug(tmp_path) / A).is_dir()
    assert run(["sessions", "list"]) == 0
    assert A in capsys.readouterr().out
    for args in (["show", "nope"], ["export", A, "--format", "pdf"], ["rename", A, " "], ["delete", "nope", "--yes"]):
        assert run(["sessions", *args]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("ba: ")
        assert shown.err.count("\n") == 1
