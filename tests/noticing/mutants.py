"""Put faults into one module, one at a time, and count how many the tests notice.

    bash .ci/mutants ba_tui/features/memory/engine/log.py tests/memory tests/resilience --sample 40 --seed 1

Without tests, those of the folder with the module's room are run. A traced run first finds which test reaches which
line, so each fault is tried against the tests that reach it, in a forked process and in a copy of the checkout. A fault
on a line that no test reaches in this process is tried against all named tests, as they may start ``ba``.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.noticing.mutant_kinds import Fault, Faults

CHECKOUT = Path(__file__).resolve().parent.parent.parent
COPIED = (
    "ba_tui",
    "tests",
    "config",
    "skills",
    "themes",
    ".ci",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
)
PRELOADED = ("pydantic_settings", "httpx2", "textual.app", "typer", "jinja2")
PATIENCE = 30.0
"""Seconds for a test run with a fault; one that hangs is noticed."""


class LineRecorder:
    """A plugin of the first run: which test reaches which line, and how long each takes."""

    def __init__(self, module: Path) -> None:
        self.lines: defaultdict[str, set[int]] = defaultdict(set)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._name = str(module)
        self._test = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._test = nodeid
        # Python ends tracing for good when the recorder itself meets the recursion limit, as in tests of deep nesting.
        sys.settrace(self.called)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def called(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self.stepped if frame.f_code.co_filename == self._name else None

    def stepped(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        self.lines[self._test].add(frame.f_lineno)
        return self.stepped

    def of(self, lines: frozenset[int]) -> list[str]:
        """Return the tests that reach one of ``lines``, the fastest first."""
        found = [test for test, reached in self.lines.items() if test and reached & lines]
        return sorted(found, key=lambda test: self.seconds[test])


def forked(work: Callable[[], int], seconds: float) -> int:
    """Return the exit code of ``work`` in a process group of its own; -1 when it took longer than ``seconds``."""
    if not (child := os.fork()):
        os.setsid()
        code = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            code = work()
        finally:
            # The temporary folder is the parent's to remove.
            os._exit(code)
    deadline = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(ended[1]) if ended[0] else (os.waitpid(child, 0), -1)[1]


def trace(module: Path, tests: list[str], report: Path) -> int:
    reached = LineRecorder(module)
    threading.settrace(reached.called)
    code = pytest.main(["-q", *tests], plugins=[reached])
    sys.settrace(None)
    report.write_text(repr((dict(reached.lines), dict(reached.seconds))))
    return code


def tried(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Fault, bool, str]]:
    """Yield each fault, whether a test noticed it, and its line as a diff."""
    module, source = folder / options.module, (CHECKOUT / options.module).read_bytes()
    faults = Faults(source).found
    if options.sample and options.sample < len(faults):
        faults = sorted(random.Random(options.seed).sample(faults, options.sample), key=lambda fault: fault.start)
    report = folder / "reached"
    if code := forked(lambda: trace(module, options.tests, report), 1_800):
        sys.exit(f"Without a fault the tests end with {code}: pytest {' '.join(options.tests)}")
    reached = LineRecorder(module)
    lines, seconds = ast.literal_eval(report.read_text())
    reached.lines.update(lines)
    reached.seconds.update(seconds)
    for number, fault in enumerate(faults):
        changed = source[: fault.start] + fault.text.encode() + source[fault.end :]
        module.unlink()
        module.write_bytes(changed)
        # Compiled modules are recognised by size and second.
        os.utime(module, (2_000_000_000 + number, 2_000_000_000 + number))
        tests = reached.of(fault.lines) or options.tests
        limit = PATIENCE + 3 * sum(reached.seconds[test] for test in tests)
        noticed = forked(lambda tests=tests: pytest.main(["-x", "-q", *tests]), limit) != 0
        before, after = (text.decode().splitlines() for text in (source, changed))
        diff = [
            line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:3] not in ("---", "+++")
        ]
        yield fault, noticed, "\n".join(diff)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bash .ci/mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("module", help="such as ba_tui/features/memory/engine/log.py")
    parser.add_argument("tests", nargs="*", help="files, folders or tests for pytest")
    parser.add_argument("--sample", type=int, default=0, help="try so many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_intermixed_args()
    options.tests = options.tests or [f"tests/{Path(options.module).parts[1]}"]
    with tempfile.TemporaryDirectory(prefix="ba-mutants-") as name:
        folder = Path(name)
        for each in COPIED:
            copy = shutil.copytree if (CHECKOUT / each).is_dir() else shutil.copy2
            copy(CHECKOUT / each, folder / each)
        for package in PRELOADED:
            import_module(package)
        os.chdir(folder)
        sys.path[:] = [name, *(each for each in sys.path if each not in ("", str(CHECKOUT)))]
        os.environ["PYTHONPATH"] = name
        for module in [each for each in sys.modules if each.partition(".")[0] in ("tests", "ba_tui")]:
            del sys.modules[module]
        noticed = total = 0
        for fault, seen, diff in tried(folder, options):
            noticed, total = noticed + seen, total + 1
            print(f"{'noticed' if seen else 'UNNOTICED':9}  line {min(fault.lines)}  {fault.kind}", flush=True)
            if not seen:
                print(diff, flush=True)
        print(f"{options.module}: {noticed} of {total} faults noticed ({100 * noticed / max(1, total):.0f} %)")


if __name__ == "__main__":
    main()
