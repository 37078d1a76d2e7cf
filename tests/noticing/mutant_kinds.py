"""The faults that ``mutants`` puts into a module: one small change each, as a person might make it by mistake."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

OPPOSITES: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Lt: ("<=", ">="), ast.LtE: ("<",), ast.Gt: (">=", "<="), ast.GtE: (">",),
    ast.In: ("not in",), ast.NotIn: ("in",), ast.Is: ("is not",), ast.IsNot: ("is",),
}  # fmt: skip


class Fault(NamedTuple):
    kind: str
    start: int
    end: int
    text: str
    """What replaces the bytes from ``start`` to ``end``."""
    lines: frozenset[int]
    """The lines whose tests may notice it."""


class Faults(ast.NodeVisitor):
    """Collects the faults of one module. Calls of ``log``, annotations and texts are left alone, and so are sizes and
    waiting times at the head of a module: another number is no fault there."""

    def __init__(self, source: bytes) -> None:
        self.found: list[Fault] = []
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines: frozenset[int] | None = None
        self._tree = ast.parse(source)
        for statement in self._tree.body:
            if isinstance(statement, ast.Assign) and _is_size(statement.value):
                continue
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
        if node.value and not _is_size(node.value):
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, self._lines = self._lines, frozenset(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._lines = outer
        for each in node.body:
            self.visit(each)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        # Decorators are left alone, as those of functions: a class without slots is no fault.
        for each in node.body:
            self.visit(each)

    visit_AsyncWith = visit_With
    visit_ImportFrom = visit_Import
    visit_AsyncFunctionDef = visit_FunctionDef


def _is_size(value: ast.expr) -> bool:
    """Return whether ``value`` is made of numbers alone, of which 0 and 1 are none: they mean nothing and the first."""
    parts = [each for each in ast.walk(value) if isinstance(each, ast.Constant | ast.Name | ast.Call)]
    return bool(parts) and all(
        isinstance(each, ast.Constant) and isinstance(each.value, int | float) and each.value not in (0, 1)
        for each in parts
    )
