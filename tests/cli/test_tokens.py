"""``ba tokens``: counts of files and of stdin, what is said of them, and what can't be counted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.resources import places
from tests.providers.counting_server import CountingServer

TEXT = "Hello, world! This is a text of some tokens.\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_text(TEXT * 10)
    return folder


def listed(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> list[dict[str, Any]]:
    assert run(["tokens", *argv, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_files_are_listed_in_the_order_given(capsys: pytest.CaptureFixture[str]):
    found = listed(capsys, "b.txt", "a.txt", "--model", "gpt-4o")
    assert found[1] == {
        "file": "a.txt",
        "tokens": 12,
        "as_message": 19,
        "family": "gpt",
        "encoding": "o200k_base",
        "margin": 1.0,
        "exact": True,
    }
    assert found[0]["file"] == "b.txt"
    assert found[0]["tokens"] == 120


def test_an_estimate_says_so(capsys: pytest.CaptureFixture[str]):
    (found,) = listed(capsys, "a.txt", "-m", "claude-opus-4-8")
    assert (found["tokens"], found["family"], found["margin"], found["exact"]) == (18 + 3, "claude", 1.43, False)
    assert found["as_message"] == 18 + 8
    assert run(["tokens", "a.txt", "b.txt", "-m", "glm-5"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        " 15  a.txt",
        "150  b.txt",
        "165  together",
        "tokens for glm-5: family glm, o200k_base, margin 1.25, an estimate",
        "sent as a message: 7 more for each",
    ]


@pytest.mark.parametrize("argv", [[], ["-"]])
def test_stdin_is_counted(
    argv: list[str], project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with (project / "a.txt").open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        (found,) = listed(capsys, *argv, "-m", "gpt-4o")
    assert (found["file"], found["tokens"]) == ("-", 12)


def test_parts_of_a_large_file_add_up(project: Path, capsys: pytest.CaptureFixture[str]):
    line = "for each row in rows:\n    total += row.amount  # 123456\n\n"
    (project / "small.txt").write_text(line * 100)
    (project / "large.txt").write_text(line * 40_000)
    small, large = listed(capsys, "small.txt", "large.txt", "-m", "gpt-4o")
    assert large["tokens"] == small["tokens"] * 400


def test_what_is_no_text_is_refused_and_the_rest_counted(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (project / "folder").mkdir()
    assert run(["tokens", "image.png", "none.txt", "folder", "a.txt", "--json", "-m", "gpt-4o"]) == 1
    shown = capsys.readouterr()
    assert [one["file"] for one in json.loads(shown.out)] == ["a.txt"]
    assert [line.split(" ")[1] for line in shown.err.splitlines()] == ["image.png", "none.txt", "folder"]
    assert "no tokens as text" in shown.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_other_ways_to_write_text_are_read(project: Path, capsys: pytest.CaptureFixture[str], encoding: str):
    (project / "other.txt").write_text("Größe und Maß, naïve café. " * 20, encoding=encoding)
    (project / "same.txt").write_text("Größe und Maß, naïve café. " * 20)
    other, same = listed(capsys, "other.txt", "same.txt", "-m", "gpt-4o")
    assert other["tokens"] == same["tokens"]


def test_an_empty_file_has_no_tokens(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "empty").touch()
    assert [(one["tokens"], one["as_message"]) for one in listed(capsys, "empty", "-m", "claude-opus-5")] == [(0, 0)]


def test_layers_count_and_a_project_that_is_not_trusted_does_not(project: Path, capsys: pytest.CaptureFixture[str]):
    places().config.mkdir(parents=True, exist_ok=True)
    (places().config / "token_encoders.yaml").write_text("models:\n  mine: {margin: 2}\n  wrong: {margin: x}\n")
    (project / ".ba").mkdir()
    (project / ".ba" / "token_encoders.yaml").write_text("models:\n  theirs: {margin: 3, encoding: p50k_base}\n")
    assert run(["tokens", "a.txt", "-m", "mine", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)[0]["margin"] == 2
    assert "wrong: margin" in shown.err
    assert listed(capsys, "a.txt", "-m", "theirs")[0]["margin"] == 1.2
    trust_folder(project)
    assert run(["tokens", "a.txt", "-m", "theirs", "--json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)[0]["margin"], json.loads(shown.out)[0]["encoding"]) == (3, "cl100k_base")
    assert "p50k_base" in shown.err


def test_the_provider_counts_where_that_is_configured(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with CountingServer() as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        places().config.mkdir(parents=True, exist_ok=True)
        entry = f"models:\n  claude-x: {{exact_counting_api: '{server.url}/v1/messages/count_tokens'}}\n"
        (places().config / "token_encoders.yaml").write_text(entry)
        (found,) = listed(capsys, "a.txt", "-m", "anthropic/claude-x")
        assert (found["tokens"], found["exact"]) == (777, True)
        server.status = 500
        assert run(["tokens", "a.txt", "b.txt", "-m", "anthropic/claude-x", "--json"]) == 0
        shown = capsys.readouterr()
        assert [one["exact"] for one in json.loads(shown.out)] == [False, False]
        assert shown.err.count("estimated instead") == 1
        assert len(server.bodies) == 2


def test_nothing_to_count_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert run(["tokens"]) == 1
    assert "Name a file" in capsys.readouterr().err
