"""Arithmetic that an answer itself shows: ``(1,472 − 685) / 685`` beside ``114.9 %``.

An expression is a run of figures with operators between them. Its result is the figure right before its brackets, or
the one behind an equals sign; both are found by the text between them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Figure

_BETWEEN = regex(r"[\s)%*_$€£¥₹]*(?P<sign>[+\-−–×*/÷·]|\bx\b)[\s(*_$€£¥₹+\-−–]*$")
"""The text between two operands of an expression."""
_OPENING = regex(
    r"[\s*_:.%]*(?:thousand|million|billion|[a-z]{1,12})?[\s*_.]*(?:[(\[=:]|i\.e\.|or)[\s(*_$€£¥₹+\-−–=]*$", 2
)
"""The text between a result and its expression behind it."""
_CLOSING = regex(r"[\s)%*_$€£¥₹]*(?:=|≈|is|gives|makes)[\s*_$€£¥₹≈~]*$", 2)
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "x": "*"})
_KEPT = frozenset("+-*/() ")
LONGEST = 60
"""Characters between the parts of an expression."""
MOST = 30
"""Figures of one expression."""


@frozen
class Expression:
    """The figures of an expression by their places in the list of figures, the figure that is its result, and its
    values: one that takes percentages as written, one that takes them as parts of one."""

    operands: tuple[int, ...]
    result: int
    values: tuple[float, ...]


def expressions(text: str, figures: Sequence[Figure]) -> Iterator[Expression]:
    """Yield the expressions of a text whose results are beside them."""
    at = 0
    while at < len(figures):
        last = at
        while last + 1 < len(figures) and last - at < MOST and _joined(text, figures[last], figures[last + 1]):
            last += 1
        if last > at:
            yield from _with_result(text, figures, at, last)
        at = last + 1


def _joined(text: str, one: Figure, other: Figure) -> bool:
    gap = text[one.end : other.start]
    return len(gap) <= LONGEST and (bool(_BETWEEN.fullmatch(gap)) or (bool(other.sign) and not gap.strip(" )%*_$")))


def _with_result(text: str, figures: Sequence[Figure], first: int, last: int) -> Iterator[Expression]:
    results: list[int] = []
    if first and _OPENING.fullmatch(text[figures[first - 1].end : figures[first].start][-LONGEST:]):
        results.append(first - 1)
    if last + 1 < len(figures) and _CLOSING.fullmatch(text[figures[last].end : figures[last + 1].start][:LONGEST]):
        results.append(last + 1)
    for result in results:
        least = figures[result].end if result < first else 0
        begin = figures[first].start
        while begin > least and text[begin - 1] in "( $€£¥₹*_-−–":
            begin -= 1
        values = [
            value
            for share in (False, True)
            if (value := _value(text, figures[first : last + 1], begin, share=share)) is not None
        ]
        if values:
            yield Expression(tuple(range(first, last + 1)), result, tuple(dict.fromkeys(values)))


def _value(text: str, figures: Sequence[Figure], begin: int, *, share: bool) -> float | None:
    """Return what an expression gives; None when it can't be read. ``share``: 11 % is 0.11."""
    parts: list[str] = []
    place = begin
    for figure in figures:
        parts.append("".join(letter for letter in text[place : figure.start].translate(_SIGNS) if letter in _KEPT))
        number = abs(float(figure.value))
        if figure.sign:
            parts.append(figure.sign)
        part = share and figure.unit is not None and figure.unit.family == "percent"
        parts.append(f"{number / 100 if part else number:.17g}")
        place = figure.end
    source = "".join(parts)
    depth = source.count("(") - source.count(")")
    tail = "".join(letter for letter in text[place : place + 12].translate(_SIGNS) if letter in _KEPT)
    closing = 0
    for letter in tail:
        if letter != ")" or closing >= depth:
            break
        closing += 1
    source += ")" * closing
    while depth - closing > 0 and source.lstrip().startswith("("):
        source, closing = source.lstrip()[1:], closing + 1
    try:
        return _reckoned(ast.parse(source.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _reckoned(node: ast.expr) -> float:
    """Return the value of arithmetic. Raises ValueError for anything else, ZeroDivisionError."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_reckoned(inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _reckoned(inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _reckoned(left) + _reckoned(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _reckoned(left) - _reckoned(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _reckoned(left) * _reckoned(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _reckoned(left) / _reckoned(right)
        case _:
            raise ValueError("no arithmetic")
