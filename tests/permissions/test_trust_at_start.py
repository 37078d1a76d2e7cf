"""Trust while a session is put together: one look at the folder serves all who ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ba_tui.permissions.trust.grants import Trust, asked_once
from ba_tui.resources import UserFolders


def test_one_answer_holds_for_what_is_put_together_at_one_go(tmp_path: Path) -> None:
    trust = Trust(UserFolders(tmp_path / "config", tmp_path / "data", tmp_path / "cache", tmp_path / "state"))
    root = tmp_path / "project"
    tool = root / ".ba" / "tools" / "a.py"
    tool.parent.mkdir(parents=True)
    tool.write_text("A = 1\n")
    trust.grant(trust.look(root))
    with asked_once():
        assert trust.trusted(root)
        tool.write_text("A = 2\n")
        with asked_once():
            assert trust.trusted(root)
        with ThreadPoolExecutor(1) as pool:
            assert not pool.submit(trust.trusted, root).result(), "another thread looks itself"
        assert trust.trusted(root)
    assert not trust.trusted(root)
    with asked_once():
        assert not trust.trusted(root), "the next one looks anew"
