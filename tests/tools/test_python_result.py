"""What the model and the user read of a call of the kernel."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.provider import Modalities
from ba_tui.core.results import CommandText, Table, ToolResult
from ba_tui.features.data.analysis.kernel.values import CallResult, CodeError, ShownPicture, ShownTable, ShownText
from ba_tui.features.data.tools.python_kernels import PythonCall, python_result

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TABLE = ShownTable("DataFrame", ("a", "b"), ("int64", "str"), ((1, "x"), (2, None)), 2, 2, plain="   a  b\n0  1  x")


def result(tmp_path: Path, *, sees: bool = False, lost: str = "", **ran: Any) -> ToolResult:
    call = PythonCall("code", tmp_path, 2_000_000_000, 5, lost)
    return python_result(CallResult(**ran), call, Modalities(pictures=lambda: sees))


def test_a_table_alone_is_a_table_and_else_all_is_shown_in_its_order(tmp_path: Path) -> None:
    alone = result(tmp_path, shown=(TABLE,))
    rows = "Columns: a int64, b str\na,b\n1,x\n2,NULL"
    assert alone.text == f"DataFrame, 2 rows, 2 columns.\n{rows}"
    assert alone.display == Table(("a", "b"), ((1, "x"), (2, None)), total=2)
    assert alone.summary == "2 rows"
    both = result(tmp_path, shown=(ShownText("hello\n"), TABLE))
    assert both.text == f"hello\nDataFrame, 2 rows, 2 columns.\n{rows}"
    assert both.display == CommandText("code", "", "hello\n   a  b\n0  1  x", 0)


def test_a_figure_is_named_and_given_to_a_model_that_sees(tmp_path: Path) -> None:
    (tmp_path / "figure-1.png").write_bytes(PNG)
    files: dict[str, Any] = {
        "shown": (ShownPicture("figure-1.png"),),
        "files": (("figure-1.png", 70), ("out.csv", 1_200)),
    }
    blind = result(tmp_path, **files)
    assert blind.text == "[picture: artifacts/figure-1.png]\n[written: artifacts/out.csv (1.2 KB)]"
    assert not blind.attachments
    assert blind.summary == "figure-1.png"
    (picture,) = result(tmp_path, sees=True, **files).attachments
    assert picture.data == base64.b64encode(PNG).decode()


@pytest.mark.parametrize("name", ["link.png", "../secret.png", "missing.png", "text.png"])
def test_what_is_no_picture_of_the_folder_is_not_given(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "text.png").write_text("no picture")
    assert not result(folder, sees=True, shown=(ShownPicture(name),)).attachments


@pytest.mark.parametrize(
    ("name", "line", "hint"),
    [
        ("OSError", "OSError: [Errno 30] Read-only file system: 'x'", "write files to ba.folder"),
        ("OSError", "OSError: [Errno 101] Network is unreachable", "Python has no network"),
        ("MemoryError", "MemoryError", "2.0 GB of memory"),
    ],
)
def test_an_error_says_what_to_do(tmp_path: Path, name: str, line: str, hint: str) -> None:
    failed = result(tmp_path, error=CodeError(name, f"cell, line 1: x\n{line}", f"Traceback\n{line}"))
    assert failed.text.startswith(f"cell, line 1: x\n{line}\n[")
    assert hint in failed.text
    assert failed.summary == line
    assert isinstance(failed.display, CommandText)
    assert failed.display.output.startswith("Traceback\n")
    assert failed.exit_status == 1


def test_late_code_is_a_timeout_with_what_it_printed(tmp_path: Path) -> None:
    error = CodeError("KeyboardInterrupt", "KeyboardInterrupt", "KeyboardInterrupt")
    late = result(tmp_path, shown=(ShownText("begun\n"),), error=error, late=True)
    assert late.error
    assert late.error.kind == "timeout"
    assert late.error.message == "The code ran longer than 5 s and was interrupted; its variables are kept."
    assert "Output so far (partial):\nbegun" in late.text


def test_lost_variables_are_said(tmp_path: Path) -> None:
    assert (
        result(tmp_path, notes=("Python was reset.",), lost="gone").text == "(no output)\n[Python was reset.]\n[gone]"
    )
