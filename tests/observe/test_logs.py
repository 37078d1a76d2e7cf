"""The log file: JSON lines, private, without secrets, and never a reason to fail."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from ba_tui.observe.logs import JsonLines, LogFile, redacted, start_logging
from ba_tui.resources import places

log = logging.getLogger("ba_tui.tests.logs")


@pytest.fixture(autouse=True)
def quiet_afterwards() -> Generator[None]:
    root, ours = logging.getLogger(), logging.getLogger("ba_tui")
    level = ours.level
    yield
    ours.setLevel(level)
    for handler in [each for each in root.handlers if isinstance(each, LogFile)]:
        root.removeHandler(handler)
        handler.close()


def written(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_a_pipe_in_place_of_the_file_holds_nothing_up(ba_home: Path) -> None:
    path = start_logging(places(), "info")
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    log.warning("nobody reads this")
    assert path.is_fifo()


def test_a_record_is_one_line_of_json_for_its_owner_only(ba_home: Path) -> None:
    path = start_logging(places(), "info")
    assert path == ba_home / "logs" / "ba.log"
    assert not path.exists()
    log.warning("escape \x1b[2J and\na line: %s", "\u202e")
    log.debug("not at this level")
    (line,) = written(path)
    assert (line["level"], line["from"], line["text"]) == ("warning", log.name, "escape \x1b[2J and\na line: \u202e")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_secrets_do_not_arrive(ba_home: Path) -> None:
    path = start_logging(places(), "debug")
    try:
        raise ValueError("key sk-ant-api03-abcdefghijklmnopqrstuvwx")
    except ValueError:
        log.exception("Authorization: Bearer %s", "abcdefghijklmnop1234")
    text = path.read_text()
    assert "abcdefghijklmnop" not in text
    assert "ValueError" in text
    assert text.count("[redacted]") >= 2


def test_a_record_that_does_not_fit_its_format_is_kept() -> None:
    record = logging.LogRecord("ba_tui", logging.ERROR, "", 0, "%d items", ("many",), None)
    assert "many" in json.loads(JsonLines().format(record))["text"]


def test_starting_again_moves_the_log(tmp_path: Path, ba_home: Path) -> None:
    start_logging(places())
    second = start_logging(places({"BA_HOME": str(tmp_path)}))
    log.error("here")
    assert len(written(second)) == 1
    assert not (ba_home / "logs").exists()


def test_libraries_are_heard_from_warnings_on_only(ba_home: Path) -> None:
    path = start_logging(places(), "debug")
    logging.getLogger("some.library").info("a whole request")
    logging.getLogger("some.library").warning("trouble")
    log.debug("ours")
    assert [line["text"] for line in written(path)] == ["trouble", "ours"]


def test_a_log_that_cannot_be_written_disturbs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    start_logging(places({"BA_HOME": str(tmp_path / "file" / "home")}))
    log.error("lost")
    assert capsys.readouterr() == ("", "")


def test_a_link_in_place_of_the_log_is_not_followed(ba_home: Path, tmp_path: Path) -> None:
    (ba_home / "logs").mkdir()
    (ba_home / "logs" / "ba.log").symlink_to(tmp_path / "target")
    start_logging(places())
    log.error("lost")
    assert not (tmp_path / "target").exists()


def test_the_file_is_rotated(ba_home: Path) -> None:
    path = start_logging(places())
    for _ in range(130):
        log.error("x" * 19_000)
    assert path.with_name("ba.log.1").exists()
    assert path.stat().st_size <= 2_000_000


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("sk-ant-api03-AbCdEfGhIjKlMnOp-x_y", "AbCdEfGh"),
        ("key=sk-proj-abcdefghijklmnopqrst", "abcdefgh"),
        ("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "0123456789"),
        ("github_pat_11ABCDEFG0123456789", "11ABCDEFG"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
        ("AIzaSyA-1234567890abcdefghijklmnopqrstuv", "1234567890"),
        ("xoxb-1234567890-abcdef", "1234567890"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "c2lnbmF0"),
        ("postgres://ann:hunter22@db/x", "hunter22"),
        ("https://ann:p%40ss@host", "p%40ss"),
        ('{"api_key": "abcdef123456"}', "abcdef123456"),
        ("X-Api-Key: abcdef123456", "abcdef123456"),
        ("DB_PASSWORD='correct horse'", "correct"),
        ("MY_SECRET_TOKEN=abcdef123456", "abcdef123456"),
        ("Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l", "YWxhZGRp"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc"),
        ("-----BEGIN PRIVATE KEY-----\nMIIabc cut off", "MIIabc"),
    ],
)
def test_shapes_of_secrets_are_redacted(text: str, secret: str) -> None:
    assert secret not in redacted(f"before {text} after")
    assert redacted(f"before {text}").startswith("before ")


@pytest.mark.parametrize(
    "text", ["a token of thanks", "sketch", "https://example.org/a:b@c", "password: short", "task-force"]
)
def test_plain_words_stay(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("part", ["a-", "api_key", "://", "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----", "bearer "])
def test_redacting_long_texts_comes_to_an_end(part: str) -> None:
    assert redacted(part * 30_000)
