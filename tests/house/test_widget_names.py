"""No widget of ours writes over a private attribute that Textual keeps for itself: it then stops painting, or worse."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from functools import cache

from textual.message_pump import MessagePump

import ba_tui.faces.tui as face


@cache
def set_on_self(cls: type) -> frozenset[str]:
    """Private attributes that the class's own code assigns."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls)))):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
                    found.add(part.attr)
    return frozenset(name for name in found if name.startswith("_"))


def test_private_names_are_ours_alone() -> None:
    taken: list[str] = []
    for info in pkgutil.walk_packages(face.__path__, f"{face.__name__}."):
        if info.name.endswith("__main__"):
            continue
        for name, cls in inspect.getmembers(importlib.import_module(info.name), inspect.isclass):
            if issubclass(cls, MessagePump) and cls.__module__ == info.name:
                theirs = [base for base in cls.__mro__ if base.__module__.startswith("textual.")]
                names = frozenset[str]().union(*map(set_on_self, theirs))
                taken += [f"{info.name}.{name}.{both}" for both in sorted(set_on_self(cls) & names)]
    assert taken == []
