"""The counting of faults that tests notice: which test reaches which line."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from pathlib import Path

from tests.noticing.mutants import LineRecorder

MODULE = """\
def deep():
    deep()
def plain():
    return 1
"""


def test_lines_are_recorded_after_a_test_that_nests_too_deep(tmp_path: Path) -> None:
    file = tmp_path / "traced_module.py"
    file.write_text(MODULE)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    recorder, before = LineRecorder(file), sys.gettrace()
    try:
        recorder.pytest_runtest_logstart("first")
        with suppress(RecursionError):
            module.deep()
        recorder.pytest_runtest_logstart("second")
        module.plain()
    finally:
        sys.settrace(before)
    assert recorder.lines == {"first": {2}, "second": {4}}
    assert recorder.of(frozenset({4})) == ["second"]
