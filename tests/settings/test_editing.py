"""Changing one key of config.yaml: the rest of the file stays, a broken file is never written over."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.resources import places
from ba_tui.settings import add_item, load_settings, remove_item, set_value
from ba_tui.settings.editing import unset_value

FILE = """\
# Mine, with care.
model: a/b   # the good one

permissions:
  # what I never want
  deny:
    - shell   # never
    - grep
  allow: [now]
providers:
    local:
        base_url: http://localhost:1/v1
append_system_prompt: |
  Be brief.

  Be kind.
# the end
"""


def config(home: Path, text: str = FILE) -> Path:
    path = home / "config.yaml"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("model", "c/d", "model: a/b ", "model: c/d "),
        ("permissions.allow", "[a, b]", "allow: [now]", "allow: [a, b]"),
        ("permissions.allow", "read_file(x, y)", "allow: [now]", "allow: ['read_file(x, y)']"),
        ("permissions.ask", "[a]", "  # what I", "  ask: [a]\n  # what I"),
        ("providers.local.base_url", "http://h/v1", "http://localhost:1/v1", "http://h/v1"),
        ("providers.local.kind", "openai", "        base_url", "        kind: openai\n        base_url"),
        ("append_system_prompt", "Short.", "|\n  Be brief.\n\n  Be kind.", "Short."),
        ("max_loops", "7", "# the end\n", "# the end\nmax_loops: 7\n"),
        ("theme", "5", "# the end\n", "# the end\ntheme: '5'\n"),
    ],
)
def test_one_value_changes_and_nothing_else(ba_home: Path, key: str, value: str, old: str, new: str) -> None:
    path = config(ba_home)
    set_value(places(), key, value)
    changed = path.read_text()
    if key == "permissions.ask":
        assert changed.replace("  ask: [a]\n", "") == FILE
    else:
        assert changed == FILE.replace(old, new)
    assert not load_settings({}, places(), ba_home / "nowhere", {}).warnings


def test_a_list_keeps_its_comments_when_an_item_comes_and_goes(ba_home: Path) -> None:
    path = config(ba_home)
    add_item(places(), "permissions.deny", "glob")
    assert path.read_text() == FILE.replace("    - grep\n", "    - grep\n    - glob\n")
    add_item(places(), "permissions.deny", "glob")
    assert path.read_text().count("glob") == 1
    assert remove_item(places(), "permissions.deny", "grep")
    assert path.read_text() == FILE.replace("    - grep\n", "    - glob\n")
    assert remove_item(places(), "permissions.deny", "glob")
    assert remove_item(places(), "permissions.deny", "shell")
    assert not remove_item(places(), "permissions.deny", "shell")
    assert "# what I never want" in path.read_text()


def test_a_file_is_made_when_there_is_none(ba_home: Path) -> None:
    assert not remove_item(places(), "permissions.deny", "x")
    assert list(ba_home.iterdir()) == []
    set_value(places(), "providers.local.base_url", "http://localhost:1")
    assert yaml.safe_load((ba_home / "config.yaml").read_text()) == {
        "providers": {"local": {"base_url": "http://localhost:1"}}
    }


@pytest.mark.parametrize(
    "text", ["", "# only words", "theme:\n", "theme: x", "{theme: x}\n", "---\ntheme: x\n", "theme:   # todo\n"]
)
def test_small_files_of_any_shape(ba_home: Path, text: str) -> None:
    path = config(ba_home, text)
    set_value(places(), "theme", "nord")
    set_value(places(), "model", "a/b")
    assert yaml.safe_load(path.read_text()) == {"theme": "nord", "model": "a/b"}
    assert ("#" in path.read_text()) == ("#" in text)


def test_windows_line_ends_stay(ba_home: Path) -> None:
    path = config(ba_home, FILE.replace("\n", "\r\n"))
    set_value(places(), "max_loops", "7")
    add_item(places(), "permissions.deny", "glob")
    content = path.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")
    assert b"    - grep\r\n    - glob\r\n" in content


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("modle", "x", "did you mean model"),
        ("max_loops", "many", "expected a whole number"),
        ("permission_mode", "yolo", "expected default, accept-edits, plan, auto"),
        ("permissions", "x", "expected a group"),
        ("providers.x.base_url", "nowhere", "expected an address"),
        ("model.name", "x", "expected text"),
        ("", "x", "unknown setting"),
    ],
)
def test_what_does_not_fit_is_refused(ba_home: Path, key: str, value: str, said: str) -> None:
    path = config(ba_home)
    with pytest.raises(UsageError, match=said):
        set_value(places(), key, value)
    assert path.read_text() == FILE


@pytest.mark.parametrize("text", ["model: [a\n", "- a\n", "a: b\n...\n", "theme: a\ntheme: b\n", "\x07"])
def test_a_file_that_can_not_be_changed_safely_stays(ba_home: Path, text: str) -> None:
    path = config(ba_home, text)
    with pytest.raises(UsageError, match=r"ba config edit|config\.yaml"):
        set_value(places(), "max_loops", "5") if "theme" not in text else set_value(places(), "theme", "c")
    assert path.read_text() == text


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="can't be used"):
        set_value(places({"BA_HOME": str(tmp_path / "file" / "home")}), "theme", "nord")


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=30)


@given(value=words, comment=st.text("abc #:-", max_size=20))
def test_any_text_comes_back_as_it_was_set(ba_home: Path, value: str, comment: str) -> None:
    config(ba_home, f"theme: x # {comment}\nmodel: a/b\n# {comment}\n")
    set_value(places(), "theme", value)
    found = load_settings({}, places(), ba_home / "nowhere", {})
    assert found.settings.theme == value
    assert found.settings.model == "a/b"
    assert (ba_home / "config.yaml").read_text().count(f"# {comment}") >= 2


@pytest.mark.parametrize(
    ("key", "text", "left"),
    [
        ("max_loops", "# mine\nmax_loops: 12  # few\ntheme: x\n", "# mine\ntheme: x\n"),
        ("theme", "max_loops: 12\ntheme: x", "max_loops: 12\n"),
        ("compression.at", "compression:\n  at: 0.5\n  keep: 2\nmodel: a/b\n", "compression:\n  keep: 2\nmodel: a/b\n"),
        ("compression.at", "compression:\n  at: 0.5\n\nmodel: a/b\n", "\nmodel: a/b\n"),
        ("compression.at", "compression: {at: 0.5, keep: 2}\n", "compression: {keep: 2}\n"),
        ("commands.domains", "commands:\n  domains:\n    - a.org\n    - b.org\n  env: x\n", "commands:\n  env: x\n"),
        ("theme", "theme: x\r\nmodel: a/b\r\n", "model: a/b\r\n"),
    ],
)
def test_a_key_is_taken_out_and_nothing_else(ba_home: Path, key: str, text: str, left: str) -> None:
    path = config(ba_home, "")
    path.write_bytes(text.encode())
    assert unset_value(places(), key)
    assert path.read_bytes().decode() == left
    assert not unset_value(places(), key)
    assert path.read_bytes().decode() == left


def test_a_key_is_not_taken_out_of_a_broken_file(ba_home: Path) -> None:
    path = config(ba_home, "theme: [a\n")
    with pytest.raises(UsageError, match=r"config\.yaml:2: is not valid YAML"):
        unset_value(places(), "theme")
    assert path.read_text() == "theme: [a\n"
    path.unlink()
    assert not unset_value(places(), "theme")
