"""What the app takes from a kernel, whose words and files may be anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.kernel.client import take_over
from ba_tui.features.data.analysis.kernel.values import KernelFailed, ShownTable, call_result, variables


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "/etc/passwd"])
def test_only_a_file_of_the_folder_is_taken_over(tmp_path: Path, name: str) -> None:
    with pytest.raises((AnalysisError, OSError)):
        take_over(tmp_path, name, tmp_path / "inbox")


def test_a_link_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "inbox").mkdir()
    with pytest.raises(KernelFailed, match="regular file"):
        take_over(tmp_path, "link", tmp_path / "inbox")
    assert not list((tmp_path / "inbox").iterdir())
    assert (tmp_path / "secret").exists()


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {},
        {"parts": 1},
        {"parts": [{"kind": "table", "table": {}}], "error": None, "late": False, "files": [], "seconds": 0},
        {"parts": [], "error": "x", "late": False, "files": [], "seconds": 0},
        {"parts": [], "error": None, "late": False, "files": [["a", "b"]], "seconds": 0},
    ],
)
def test_a_reply_that_makes_no_sense_is_an_error(reply: Any) -> None:
    with pytest.raises(KernelFailed, match="can't be read"):
        call_result(reply, (), ())
    assert variables(reply) == ()


def test_a_handle_that_the_call_did_not_make_opens_nothing() -> None:
    table = {"kind": "DataFrame", "columns": ["a"], "types": ["int"], "rows": [[1]], "total": 1, "width": 1}
    part = {"kind": "table", "table": {**table, "handle": "R7"}}
    (shown,) = call_result({"parts": [part], "error": None, "late": False, "files": [], "seconds": 0}, (), ()).shown
    assert isinstance(shown, ShownTable)
    assert shown.handle == ""
