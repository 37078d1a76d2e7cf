"""Settings as a form: set, refused, and back at their default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.resources import places
from ba_tui.settings import load_settings
from ba_tui.settings.editing import SettingsOfFolder


def form(folder: Path, env: Mapping[str, str] | None = None) -> SettingsOfFolder:
    return SettingsOfFolder(places(), lambda: load_settings({}, places(), folder, env or {}), lambda key, value: None)


def test_a_hidden_password_is_never_saved(tmp_path: Path) -> None:
    made = form(tmp_path)
    made.set("web_search.url", "https://me:secret@search.example")
    (shown,) = [line.value for line in made.lines() if line.key == "web_search.url"]
    assert shown == "https://me:…@search.example"
    with pytest.raises(UsageError, match="password"):
        made.set("web_search.url", shown.replace("search.", "find."))
    assert "secret" in places().settings.read_text()


def test_a_setting_goes_back_to_what_else_sets_it(tmp_path: Path) -> None:
    made = form(tmp_path, {"BA_LOG_LEVEL": "debug"})
    for key in ("log_level", "max_loops"):
        made.set(key, {"log_level": "info", "max_loops": "20"}[key])
    assert made.reset("log_level").startswith("log_level is no longer set in your file, but ")
    assert made.reset("log_level").startswith("log_level is not set in your file, but ")
    assert made.reset("max_loops") == "max_loops has its default again, from the next start of ba."
    assert made.reset("max_loops") == "max_loops has its default already."
