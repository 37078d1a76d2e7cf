"""Calls in the syntax of Python, ``read_file(path="a.txt")``, alone or in a list. Nothing of it is ever run.

Where such calls may stand in a reply is not known here.
"""

from __future__ import annotations

import ast
import json
import warnings
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import LONGEST, Decoder, Unfinished
from ba_tui.providers.text_calls.known import Known, Written

_START = regex(r"\[?\s*+(?:[A-Za-z_][\w.-]*+)\(")
_CONSTANTS = {"true": True, "false": False, "null": None}
_NO_PYTHON = "the call can't be read as Python"


@frozen
class Calls:
    """What stood at a place, and where it ends."""

    calls: tuple[Written, ...]
    end: int


def starts(text: str, at: int) -> bool:
    """Whether a call, or a list of calls, begins at ``at``."""
    return _START.match(text, at) is not None


def python_calls(text: str, start: int, stop: int, known: Known, decoder: Decoder) -> Calls:
    """The call or the list of calls at ``start``.

    Raises:
        Unfinished: it breaks off. ValueError: it is none, or its arguments are more than literals.
    """
    opening = text.index("[" if text[start] == "[" else "(", start)
    reach = decoder.extent(text, opening, stop)
    if reach.missing:
        raise Unfinished("it breaks off before its end")
    source = text[start : reach.end].strip()
    if len(source) > LONGEST:
        raise ValueError(f"{_NO_PYTHON}: it is too long")
    with warnings.catch_warnings():
        # An escape that Python does not know would be told to the terminal.
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise ValueError(_NO_PYTHON) from error
    nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    calls = [_call(node, known, source) for node in nodes]
    if not calls:
        raise ValueError("there is no call")
    return Calls(tuple(calls), reach.end)


def _call(node: ast.expr, known: Known, source: str) -> Written:
    if not isinstance(node, ast.Call):
        raise ValueError("there is no call")
    if isinstance(node.func, ast.Name) and node.func.id == "print" and len(node.args) == 1 and not node.keywords:
        # Gemini's habit: print(read_file(path="a.txt")).
        return _call(node.args[0], known, source)
    name = ast.unparse(node.func).removesuffix(".call")
    arguments = {keyword.arg: _literal(keyword.value) for keyword in node.keywords if keyword.arg}
    if len(arguments) != len(node.keywords):
        raise ValueError(f"{_NO_PYTHON}: it unpacks values")
    if not node.args:
        return known.read(name, arguments, source)
    given = [_literal(each) for each in node.args]
    sole = known.parameter(name)
    if len(given) == 1 and sole and sole not in arguments:
        return known.read(name, {sole: given[0], **arguments}, source)
    if len(given) == 1 and not arguments and isinstance(given[0], dict):
        return known.read(name, cast("dict[str, Any]", given[0]), source)
    if len(given) == 1 and not arguments and known.open:
        return known.read(name, given[0] if isinstance(given[0], str) else json.dumps(given[0]), source)
    return Written(name, {}, f"Name the arguments of {name}, as in {name}(name=value).", source)


class _JsonConstants(ast.NodeTransformer):
    """Reads ``true``, ``false`` and ``null`` as JSON does."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node


def _literal(node: ast.expr) -> Any:
    """The value of a literal. Raises ValueError for anything else."""
    try:
        return json.loads(json.dumps(ast.literal_eval(_JsonConstants().visit(node))))
    except (TypeError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"{_NO_PYTHON}: only literal values are allowed") from error
