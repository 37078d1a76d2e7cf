"""API keys: where they are looked for, where they are kept, and that nobody sees them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.resources import places
from ba_tui.settings import read_key, save_key
from ba_tui.settings.keys import saved_openly


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


def test_the_environment_comes_first(ba_home: Path) -> None:
    assert read_key("anthropic", "ANTHROPIC_API_KEY", places(), {}) is None
    assert save_key("anthropic", "  kept-key\n", places()) == str(ba_home / "keys.yaml")
    found = read_key("anthropic", "ANTHROPIC_API_KEY", places(), {})
    assert found is not None
    assert (found.value, found.source) == ("kept-key", str(ba_home / "keys.yaml"))
    (ba_home / ".env").write_text("ANTHROPIC_API_KEY=from-dotenv\n")
    found = read_key("anthropic", "ANTHROPIC_API_KEY", places(), {})
    assert found is not None
    assert found.value == "from-dotenv"
    found = read_key("anthropic", "ANTHROPIC_API_KEY", places(), {"ANTHROPIC_API_KEY": "from-env"})
    assert found is not None
    assert (found.value, found.source) == ("from-env", "ANTHROPIC_API_KEY")
    assert "from-env" not in repr(found)


def test_the_file_is_its_owners_only_and_keeps_other_keys(ba_home: Path) -> None:
    save_key("one", "key-1", places())
    save_key("two", "key-2", places())
    assert stat.S_IMODE((ba_home / "keys.yaml").stat().st_mode) == 0o600
    assert saved_openly(places()) is None
    one, two = read_key("one", None, places(), {}), read_key("two", None, places(), {})
    assert one is not None
    assert two is not None
    assert (one.value, two.value) == ("key-1", "key-2")


def test_open_rights_are_told(ba_home: Path) -> None:
    save_key("one", "key-1", places())
    (ba_home / "keys.yaml").chmod(0o644)
    problem = saved_openly(places())
    assert problem is not None
    assert "chmod 600" in problem.hint


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("two words", "contains a space"),
        ("line\nbreak", "contains a line break"),
        ("line\r\nbreak", "contains a line break"),
        ("schlüssel", "contains a character that is not allowed in a key"),
        ("esc\x1b[31m", "contains a character that is not allowed in a key"),
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(ba_home: Path, key: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong) as refused:
        save_key("one", key, places())
    assert not key.strip() or key not in refused.value.with_hint
    assert not (ba_home / "keys.yaml").exists()


def test_a_broken_file_is_told_and_never_written_over(ba_home: Path) -> None:
    (ba_home / "keys.yaml").write_text("one: [\n")
    with pytest.raises(StorageError, match=r"keys\.yaml:2"):
        read_key("one", None, places(), {})
    with pytest.raises(StorageError, match=r"keys\.yaml:2"):
        save_key("two", "key-2", places())
    assert (ba_home / "keys.yaml").read_text() == "one: [\n"


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    where = places({"BA_HOME": str(tmp_path / "file" / "home")})
    assert read_key("one", None, where, {}) is None
    with pytest.raises(StorageError, match="can't be used"):
        save_key("one", "key-1", where)
