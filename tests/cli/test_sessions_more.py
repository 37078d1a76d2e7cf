"""``ba sessions search|import|prune`` and exports with secrets: data on stdout, nothing lost without a yes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ba_tui.cli.sessions import app
from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.upkeep import RetentionRule, seconds_of, sessions_to_prune
from tests.sessions.shelf import folder_of, library, stored, turn
from tests.sessions.test_importing import SESSION, file

A, B, C = "20261121-120000-ab12", "20261121-130000-cd34", "20261122-090000-ef56"
DAY = 86_400.0

Ba = Callable[..., Result]


@pytest.fixture
def ba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ba:
    """Runs ``ba sessions …`` over three sessions, the last of another folder."""
    monkeypatch.setenv("COLUMNS", "100")
    now = time.time()
    stored(tmp_path, A, turn("Count the rows", at=now - 40 * DAY))
    stored(tmp_path, B, turn("Plot [bold]sales[/bold] \x1b[31mred", at=now - 10 * DAY))
    stored(tmp_path, C, turn("Elsewhere are rows", at=now - 90 * DAY), Path("/srv/oth\x1b[31mer"))
    shelf = library(tmp_path)

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(app, args, obj=shelf)

    return invoke


def ids(result: Result) -> set[str]:
    return {record["id"] for record in json.loads(result.stdout)}


def test_search_shows_where_the_words_stand(ba: Ba) -> None:
    assert ids(ba("search", "rows", "--json")) == {A, C}
    assert ids(ba("search", "rows", "--json", "--here")) == {A}
    assert ids(ba("search", "--json", "--", "About", "sales")) == {B}
    (record,) = json.loads(ba("search", "count", "--json").stdout)
    assert record["found"].startswith("About Count the rows")
    shown = ba("search", "about").stdout
    assert "[bold]sales[/bold]" in shown
    assert "\x1b" not in shown
    assert "2 more" in ba("search", "about", "--limit", "1").stderr
    nothing = ba("search", "no such words")
    assert (nothing.stdout, nothing.exit_code) == ("", 0)
    assert "No session" in nothing.stderr


def test_prune_asks_shows_and_spares(ba: Ba, tmp_path: Path) -> None:
    refused = ba("prune", "--older-than", "30d")
    assert isinstance(refused.exception, UsageError)
    assert refused.exception.hint == "Add --yes."
    assert A in refused.stderr
    dry = ba("prune", "--older-than", "30d", "--dry-run")
    assert A in dry.stdout
    assert C in dry.stdout
    assert B not in dry.stdout
    assert ids(ba("list", "--all", "--json")) == {A, B, C}
    for args in ((), ("--older-than", "soon"), ("--older-than", "30")):
        assert isinstance(ba("prune", *args).exception, UsageError)
    held = JournalFile.open(folder_of(tmp_path, A))
    assert ba("prune", "--older-than", "30d", "--yes").stdout == f"{C}\n"
    assert "No session is that old" in ba("prune", "--older-than", "30d", "--yes").stderr
    held.close()
    assert ba("prune", "--keep", "1", "--yes").stdout == f"{A}\n"
    assert ids(ba("list", "--all", "--json")) == {B}


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        (RetentionRule(), ""),
        (RetentionRule(older=25.0), "c"),
        (RetentionRule(keep=1), "cb"),
        (RetentionRule(keep=0), "cba"),
        (RetentionRule(older=15.0, keep=2), "c"),
        (RetentionRule(older=15.0, keep=3), ""),
    ],
)
def test_what_is_old_is_said_by_age_and_number(rule: RetentionRule, gone: str) -> None:
    infos = [SessionInfo(id, id, Path("/"), 0.0, 100.0 - 10.0 * place) for place, id in enumerate("abc")]
    infos.append(SessionInfo("d", "d", Path("/"), 0.0, 1.0, locked_by="pid 1"))
    assert "".join(info.id for info in sessions_to_prune(infos, rule, 106.0)) == gone


def test_ages_are_written_with_their_unit() -> None:
    assert [seconds_of(age) for age in ("1h", "30d", "2 W", "1m", "1y")] == [
        3600,
        30 * DAY,
        14 * DAY,
        30 * DAY,
        365 * DAY,
    ]


def test_import_paints_the_names_of_files_that_it_refuses(ba: Ba, tmp_path: Path) -> None:
    names = [tmp_path / f"{number}\x1b]0;owned\x07.jsonl" for number in range(2)]
    for name in names:
        name.write_text("nonsense\n", "utf-8")
    result = ba("import", *map(str, names))
    assert result.stderr.count(".jsonl is of no format") == 2
    assert "\x1b" not in result.stderr
    assert isinstance(result.exception, UsageError)


def test_import_names_the_new_session_and_what_was_left_out(ba: Ba, tmp_path: Path) -> None:
    path = file(tmp_path, SESSION)
    result = ba("import", str(path))
    id = result.stdout.strip()
    assert "Totals of the north" in result.stderr
    assert "1 file-history-snapshot" in result.stderr
    assert json.loads(ba("show", id, "--json").stdout)["title"] == "Totals of the north"
    again = ba("import", str(path))
    assert isinstance(again.exception, UsageError)
    assert id in str(again.exception)
    other = tmp_path / "other.jsonl"
    other.write_text(ba("export", A, "-f", "jsonl").stdout)
    both = ba("import", str(path), str(other), str(tmp_path / "none.jsonl"), "--json")
    assert [record["source"] for record in json.loads(both.stdout)] == [f"ba {A}"]
    assert "2 of 3" in str(both.exception)
    assert "none.jsonl can't be read" in both.stderr


def test_exports_leave_secrets_out_unless_told(ba: Ba, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    stored(tmp_path, "20261123-090000-aaaa", [TurnStarted(user(f"Use {secret}")), TurnEnded("done")])
    for format in ("md", "html", "json", "jsonl"):
        assert secret not in ba("export", "aaaa", "-f", format).stdout
        assert secret in ba("export", "aaaa", "-f", format, "--with-secrets").stdout
    refused = ba("export", "aaaa", "-f", "workflow", "--with-secrets")
    assert isinstance(refused.exception, UsageError)
    page = tmp_path / "page.html"
    ba("export", A, "-o", str(page))
    assert page.read_text().startswith("<!doctype html>")


def test_show_gives_a_long_prompt_one_short_cell_with_how_it_ended(ba: Ba, tmp_path: Path) -> None:
    prompt = TurnStarted(user("Look at this: " + "row of the paste\n" * 5_000))
    stored(tmp_path, "20261122-100000-aa00", [prompt, TurnEnded("limit")])
    shown = ba("show", "aa00").stdout
    assert "Look at this: row of the paste" in shown
    assert "(limit)" in shown
    assert len(shown.splitlines()) < 14


def test_an_export_that_cannot_be_written_says_what_to_do(ba: Ba, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    error = ba("export", A, "-o", str(tmp_path / "taken" / "page.html")).exception
    assert isinstance(error, StorageError)
    assert error.hint.endswith("name another file.")
