"""Which plugins are found, and under which name."""

from __future__ import annotations

import json
from pathlib import Path

from ba_tui.settings.plugins import plugins_of


def test_a_plugin_is_off_where_the_settings_hold_comments(tmp_path: Path) -> None:
    claude, listed = tmp_path / ".claude", {}
    for name in ("on", "off"):
        folder = claude / "cache" / name
        (folder / "commands").mkdir(parents=True)
        listed[f"{name}@market"] = [{"scope": "user", "installPath": str(folder)}]
    (claude / "plugins").mkdir()
    (claude / "plugins" / "installed_plugins.json").write_text(json.dumps({"plugins": listed}))
    settings = '{\n  // Not needed at work.\n  "enabledPlugins": {"off@market": false, /* yet */},\n}\n'
    (claude / "settings.json").write_text(settings)
    found = plugins_of(tmp_path, tmp_path / "config", tmp_path / "project", lambda: True)
    assert [plugin.name for plugin in found] == ["on"]
