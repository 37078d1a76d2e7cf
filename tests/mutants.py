"""Put faults into one module, one at a time, and count how many the tests notice.

    bash .ci/mutants ba_tui/memory/log.py tests/memory tests/resilience --sample 40 --seed 1

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
from typing import Any, NamedTuple

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
COPIED = ("ba_tui", "tests", "config", "skills", "themes", ".ci", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
PRELOADED = ("pydantic_settings", "httpx2", "textual.app", "typer", "jinja2")
OPPOSITES: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Lt: ("<=", ">="), ast.LtE: ("<",), ast.Gt: (">=", "<="), ast.GtE: (">",),
    ast.In: ("not in",), ast.NotIn: ("in",), ast.Is: ("is not",), ast.IsNot: ("is",),
}  # fmt: skip
PATIENCE = 30.0
"""Seconds for a test run with a fault; one that hangs is noticed."""


class Fault(NamedTuple):
    kind: str
    start: int
    end: int
    text: str
    """What replaces the bytes from ``start`` to ``end``."""
    lines: frozenset[int]
    """The lines whose tests may notice it."""


class Faults(ast.NodeVisitor):
    """Collects the faults of one module. Calls of ``log``, annotations and texts are left alone."""

    def __init__(self, source: bytes) -> None:
        self.found: list[Fault] = []
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines: frozenset[int] | None = None
        self._tree = ast.parse(source)
        for statement in self._tree.body:
            self._lines = self._uses(statement)
            self.visit(statement)

    def _uses(self, statement: ast.stmt) -> frozenset[int] | None:
        """A constant is noticed where it is used."""
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if not isinstance(target, ast.Name):
            return None
        uses = (each for each in ast.walk(self._tree) if isinstance(each, ast.Name) and each.id == target.id)
        return frozenset(each.lineno for each in uses)

    def _place(self, node: Any) -> tuple[int, int]:
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        start, end = self._place(node)
        return self._source[start:end].decode()

    def _add(self, kind: str, first: Any, text: str, last: Any = None) -> None:
        lines = self._lines or frozenset(range(first.lineno, (last or first).end_lineno + 1))
        self.found.append(Fault(kind, self._place(first)[0], self._place(last or first)[1], text, lines))

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and self._text(call.func).startswith(("log.", "_log.")):
            return
        if isinstance(call, ast.Call):
            self._add("call deleted", node, "pass")
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        body = self._source[self._place(node.body[0])[0] : self._place(node.body[-1])[1]].decode()
        for text in {"pass", "raise"} - {body.strip()}:
            self._add(f"except body: {text}", node.body[0], text, node.body[-1])
        for each in node.body:
            self.visit(each)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            if "suppress(" in self._text(item.context_expr):
                self._add("suppress dropped", item.context_expr, "__import__('contextlib').nullcontext()")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left, right = self._text(node.left), self._text(node.comparators[-1])
        if len(node.ops) == 1:
            for operator in OPPOSITES[type(node.ops[0])]:
                self._add("comparison", node, f"({left} {operator} {right})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " or " if isinstance(node.op, ast.And) else " and "
        self._add("boolean", node, "(" + word.join(f"({self._text(each)})" for each in node.values) + ")")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add("boolean", node, f"bool({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in self._text(node.test):
            if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                self._add("boolean", node.test, f"(not ({self._text(node.test)}))")
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.BitOr) and "O_" in (right := self._text(node.right)) and "CLOEXEC" not in right:
            self._add("file mode", node, f"({self._text(node.left)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value, text = node.value, self._text(node)
        if isinstance(value, bool):
            self._add("constant", node, str(not value))
        elif isinstance(value, int) and text.startswith("0o"):
            self._add("file mode", node, f"({text} | 0o044)" if not value & 0o044 else f"({text} & ~0o044)")
        elif isinstance(value, int | float):
            self._add("constant", node, f"({text} + 1)" if isinstance(value, int) else f"({text} * 10 + 1)")

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        return

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, self._lines = self._lines, frozenset(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._lines = outer
        for each in node.body:
            self.visit(each)

    visit_AsyncWith = visit_With
    visit_ImportFrom = visit_Import
    visit_AsyncFunctionDef = visit_FunctionDef


class Reached:
    """A plugin of the first run: which test reaches which line, and how long each takes."""

    def __init__(self, module: Path) -> None:
        self.lines: defaultdict[str, set[int]] = defaultdict(set)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._name = str(module)
        self._test = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._test = nodeid

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
        null = os.open(os.environ.get("MUT_OUT", os.devnull), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        for number in range(3):
            os.dup2(null, number)
        os._exit(work())
    deadline = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(ended[1]) if ended[0] else (os.waitpid(child, 0), -1)[1]


def trace(module: Path, tests: list[str], report: Path) -> int:
    reached = Reached(module)
    threading.settrace(reached.called)
    sys.settrace(reached.called)
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
    reached = Reached(module)
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
        diff = [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:3] not in ("---", "+++")]
        yield fault, noticed, "\n".join(diff)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bash .ci/mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("module", help="such as ba_tui/memory/log.py")
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
