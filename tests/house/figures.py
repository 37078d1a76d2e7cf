"""The shape of the package in figures: ``python -m tests.house.figures [FOLDER]``.

- small: modules with fewer than ``SMALL`` lines of code; blank lines, comments, docstrings and imports do not count
- one importer: modules that one other module imports, which is in the same folder
- twice: names of classes that two or more modules define
- participles: classes whose whole name is one word that ends in -ed or -ing
- protocols, and those of them in a file or folder named port or ports
- bundles: classes with three or more annotated fields that hold a Callable
- late: names imported within functions, except those called open or main
- circles: groups of modules that import each other at their top
- between, into: imports from one feature into another, and from the base into features
"""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeAlias

import grimp

PACKAGE = "ba_tui"
SMALL = 40
BUNDLE = 3
FREE = frozenset({"open", "main"})
_PARTICIPLE = re.compile(r"_?[A-Z][a-z]+(?:ed|ing)")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """One file: its name with dots, its lines, and the modules that it imports, within functions too."""

    name: str
    path: Path
    tree: ast.Module
    lines: int
    code: int
    imports: set[str] = field(default_factory=set[str])
    late: int = 0

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.tree.body if isinstance(node, ast.ClassDef))


def modules_below(folder: Path) -> dict[str, Module]:
    """Return the modules of the package in ``folder`` by their names."""
    found: dict[str, Module] = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        dotted = ".".join((PACKAGE, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
        found[dotted] = Module(dotted, path, tree, len(text.splitlines()), _code(text, tree))
    for module in found.values():
        _read_imports(module, module.tree, found)
    return found


def _code(text: str, tree: ast.Module) -> int:
    """Return how many lines are code."""
    apart: set[int] = set()
    for node in (tree, *_statements_below(tree)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            apart.update(_span(node.body[0]))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            apart.update(_span(node))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in apart for number, line in lines)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements directly in ``node``, and what holds further ones. Expressions are most of a tree, and hold
    none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child


def _statements_below(node: ast.AST) -> Iterator[ast.AST]:
    for child in _statements(node):
        yield child
        yield from _statements_below(child)


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _read_imports(module: Module, node: ast.AST, known: Mapping[str, Module], *, late: bool = False) -> None:
    for child in _statements(node):
        if isinstance(child, ast.ImportFrom) and (child.module or "").partition(".")[0] == PACKAGE:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                module.imports.add(whole if whole in known else child.module or "")
            module.late += len(child.names) if late else 0
        within = late or (isinstance(child, Function) and child.name not in FREE)
        _read_imports(module, child, known, late=within)


def feature_of(name: str) -> str:
    """Return the feature that a module belongs to; empty for the base."""
    parts = name.split(".")
    return parts[2] if parts[1:2] == ["features"] and len(parts) > 2 else ""


def figures(modules: Mapping[str, Module]) -> dict[str, float]:
    """Return each figure of the table by its name."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for name in module.imports - {module.name}:
            importers[name].add(module.name)
    classes = [each for module in modules.values() for each in module.classes]
    names = Counter(each.name for each in classes)
    protocols = [module for module in modules.values() for each in module.classes if _is_protocol(each)]
    pairs = [(feature_of(module.name), feature_of(name)) for module in modules.values() for name in module.imports]
    sizes = [module.lines for module in modules.values()]
    return {
        "modules": len(modules),
        "lines": sum(sizes),
        "median lines": median(sizes),
        "largest": max(sizes),
        "small": sum(module.code < SMALL and not module.path.stem.startswith("__") for module in modules.values()),
        "one importer": sum(_joins(module, modules, importers[module.name]) for module in modules.values()),
        "twice": sum(count > 1 for count in names.values()),
        "participles": sum(bool(_PARTICIPLE.fullmatch(each.name)) for each in classes),
        "protocols": len(protocols),
        "protocols at a boundary": sum(
            "port" in module.path.stem or "ports" in module.path.parts for module in protocols
        ),
        "bundles": sum(_callables(each) >= BUNDLE for each in classes),
        "late": sum(module.late for module in modules.values()),
        "circles": len(grimp.build_graph(PACKAGE, cache_dir=None).nominate_cycle_breakers(PACKAGE)),
        "between": sum(bool(one and other and one != other) for one, other in pairs),
        "into": sum(bool(not one and other) for one, other in pairs),
    }


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(getattr(base, "id", "") == "Protocol" for base in node.bases)


def _callables(node: ast.ClassDef) -> int:
    return sum("Callable" in ast.unparse(each.annotation) for each in node.body if isinstance(each, ast.AnnAssign))


def _joins(module: Module, modules: Mapping[str, Module], importers: set[str]) -> bool:
    """Whether one module imports it, which is in the same folder."""
    if module.is_package or len(importers) != 1:
        return False
    return modules[next(iter(importers))].path.parent == module.path.parent


def main(arguments: list[str]) -> None:
    # All trees are kept: to look for garbage among them again and again took most of the time.
    gc.disable()
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2] / PACKAGE
    for name, value in figures(modules_below(folder)).items():
        print(f"{name:24} {value:,.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
