"""Exact arithmetic: computes with fractions, shows decimals, and treats percentages as in everyday use.

Nothing is evaluated as Python. Sizes are limited, so that no expression takes long.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation, Overflow
from fractions import Fraction
from functools import reduce
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

MAX_CHARS = 1_000
MAX_DEPTH = 50
BITS = 12_000
"""Most bits of a number, about 3,600 decimal digits."""
DIGITS = 28
_WIDE = Context(prec=60)
_TOKEN = regex(
    r"\s*(?:(?P<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-zπτ][A-Za-z0-9]*)"
    r"|(?P<sign>\*\*|//|[-+*/^%(),×÷·−]))"
)
_SAME = {"×": "*", "·": "*", "÷": "/", "−": "-", "**": "^"}
_PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494")
_E = Fraction("2.71828182845904523536028747135266249775724709369995957496697")


@frozen
class Value:
    """A result. ``rounded``: the text is not the exact value."""

    text: str
    rounded: bool


@frozen
class _Number:
    """A number. ``percent``: written with a percent sign, so that adding it adds that share."""

    value: Fraction
    rounded: bool = False
    percent: bool = False


def evaluate(expression: str) -> Value:
    """Compute an expression. Raises ToolFailure for an invalid one."""
    if len(expression) > MAX_CHARS:
        raise ToolFailure(
            "invalid_parameters", f"The expression is longer than {MAX_CHARS} characters.", "Compute it in parts."
        )
    try:
        result = _Parser(_tokens(expression)).whole()
    except (ZeroDivisionError, InvalidOperation) as error:
        message = "Division by zero." if "ZeroDivision" in type(error).__name__ else "The expression has no value."
        raise ToolFailure("validation_error", message, "Check the numbers.") from error
    except (OverflowError, Overflow) as error:
        raise _too_large() from error
    except ValueError as error:
        raise ToolFailure(
            "validation_error", f"Not defined: {error}.", "Check the arguments of the functions."
        ) from error
    return _read(result)


def _tokens(expression: str) -> list[str]:
    found: list[str] = []
    at, text = 0, expression.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            message = f"Not understood at {text[at : at + 20].strip()!r}."
            raise ToolFailure(
                "invalid_parameters", message, "Use numbers, + - * / // % ^ ( ), and functions such as sqrt(2)."
            )
        token = match.group(match.lastgroup or 0)
        found.append(_SAME.get(token, token))
        at = match.end()
    return found


class _Parser:
    """Parses and computes an expression. ``%`` after a number means percent unless an operand follows."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [*tokens, "", ""]
        self._at = 0
        self._depth = 0

    def whole(self) -> _Number:
        value = self._sum()
        if self._next():
            raise _unexpected(self._next())
        return value

    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self, *tokens: str) -> str:
        token = self._next()
        if token not in tokens or not token:
            return ""
        self._at += 1
        return token

    def _sum(self) -> _Number:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ToolFailure("invalid_parameters", f"The expression is nested deeper than {MAX_DEPTH} levels.")
        left = self._product()
        while sign := self._take("+", "-"):
            right = self._product()
            share = left.value * right.value if right.percent and not left.percent else right.value
            value = left.value + share if sign == "+" else left.value - share
            left = _number(value, left.rounded or right.rounded, percent=left.percent and right.percent)
        self._depth -= 1
        return left

    def _product(self) -> _Number:
        left = self._signed()
        while sign := self._take("*", "/", "//", "%", "of", "mod"):
            right = self._signed()
            match sign:
                case "*" | "of":
                    value = left.value * right.value
                case "/":
                    value = left.value / right.value
                case "//":
                    value = Fraction(left.value // right.value)
                case _:
                    value = left.value % right.value
            left = _number(value, left.rounded or right.rounded)
        return left

    def _signed(self) -> _Number:
        signs = 0
        while sign := self._take("+", "-"):
            signs += sign == "-"
        value = self._power()
        return _Number(-value.value, value.rounded, value.percent) if signs % 2 else value

    def _power(self) -> _Number:
        base = self._percent(self._atom())
        if not self._take("^"):
            return base
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ToolFailure("invalid_parameters", f"The expression is nested deeper than {MAX_DEPTH} levels.")
        exponent = self._signed()
        self._depth -= 1
        return _raised(base, exponent)

    def _percent(self, value: _Number) -> _Number:
        if self._next() == "%" and not self._operand(self._tokens[self._at + 1]):
            self._at += 1
            return _number(value.value / 100, value.rounded, percent=True)
        return value

    @staticmethod
    def _operand(token: str) -> bool:
        return token[:1] in {"(", "."} or (token[:1].isalnum() and token not in {"of", "mod"})

    def _atom(self) -> _Number:
        token = self._next()
        self._at += 1
        if token.startswith("("):
            value = self._sum()
            if not self._take(")"):
                raise _unexpected(self._next())
            return value
        if token[:1].isdigit() or token[:1] == ".":
            return _literal(token)
        if token.isalpha() or token.isalnum():
            return self._named(token)
        raise _unexpected(token)

    def _named(self, name: str) -> _Number:
        lower = name.lower()
        if self._take("("):
            values: list[_Number] = []
            while self._next() != ")":
                values.append(self._sum())
                if not self._take(","):
                    break
            if not self._take(")"):
                raise _unexpected(self._next())
            return _called(lower, values)
        if lower in {"pi", "π"}:
            return _Number(_PI, rounded=True)
        if lower in {"tau", "τ"}:
            return _Number(_PI * 2, rounded=True)
        if lower == "e":
            return _Number(_E, rounded=True)
        hint = f"Constants are pi, e, tau; functions are {', '.join(sorted(_FUNCTIONS))}."
        raise ToolFailure("invalid_parameters", f"Unknown name {name!r}.", hint)


def _literal(token: str) -> _Number:
    mantissa, _, exponent = token.replace("_", "").lower().partition("e")
    if exponent and abs(int(exponent)) > BITS // 4:
        raise _too_large()
    return _number(Fraction(mantissa + (f"e{exponent}" if exponent else "")))


def _number(value: Fraction, rounded: bool = False, *, percent: bool = False) -> _Number:
    if value.numerator.bit_length() > BITS or value.denominator.bit_length() > BITS:
        raise _too_large()
    return _Number(value, rounded, percent)


def _raised(base: _Number, exponent: _Number) -> _Number:
    power = exponent.value
    rounded = base.rounded or exponent.rounded
    if power.denominator == 1:
        size = max(base.value.numerator.bit_length(), base.value.denominator.bit_length())
        if base.value in {0, 1, -1} or abs(power) * size <= BITS + size:
            return _number(base.value ** int(power), rounded)
        raise _too_large()
    if base.value < 0:
        raise ValueError("a root of a negative number")
    return _number(_from_decimal(_WIDE.power(_decimal(base.value), _decimal(power))), rounded=True)


def _decimal(value: Fraction) -> Decimal:
    return _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))


def _from_decimal(value: Decimal) -> Fraction:
    if not value.is_finite() or abs(value.adjusted()) > BITS // 4:
        raise _too_large()
    return Fraction(value)


def _root(value: Fraction) -> _Number:
    if value < 0:
        raise ValueError("the square root of a negative number")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return _Number(Fraction(top, bottom))
    return _Number(_from_decimal(_WIDE.sqrt(_decimal(value))), rounded=True)


def _logarithm(value: Fraction, base: Fraction | None = None) -> _Number:
    if value <= 0 or (base is not None and (base <= 0 or base == 1)):
        raise ValueError("the logarithm of that number")
    if base is None:
        return _Number(_from_decimal(_WIDE.ln(_decimal(value))), rounded=True)
    result = _from_decimal(_WIDE.divide(_WIDE.ln(_decimal(value)), _WIDE.ln(_decimal(base))))
    whole = round(result)
    if abs(whole) * base.numerator.bit_length() <= BITS and base**whole == value:
        return _Number(Fraction(whole))
    return _Number(result, rounded=True)


def _logarithm_to(base: int) -> Callable[[Fraction], _Number]:
    return lambda value: _logarithm(value, Fraction(base))


def _absolute(value: Fraction) -> _Number:
    return _Number(abs(value))


def _whole_number(function: Callable[[Fraction], int]) -> Callable[[Fraction], _Number]:
    return lambda value: _Number(Fraction(function(value)))


def _exponential(value: Fraction) -> _Number:
    if abs(value) > BITS // 2:
        raise _too_large()
    return _Number(_from_decimal(_WIDE.exp(_decimal(value))), rounded=True)


def _rounded(value: Fraction, digits: Fraction = Fraction(0)) -> _Number:
    """Round half away from zero, as for money."""
    if digits.denominator != 1 or abs(digits) > 1_000:
        raise ValueError("round takes a whole number of digits up to 1000")
    scale = Fraction(10) ** int(digits)
    whole = math.floor(abs(value) * scale + Fraction(1, 2))
    return _Number(Fraction(whole if value >= 0 else -whole) / scale)


def _factorial(value: Fraction) -> _Number:
    if value.denominator != 1 or not 0 <= value <= 1_000:
        raise ValueError("factorial takes whole numbers from 0 to 1000")
    return _number(Fraction(math.factorial(int(value))))


def _whole(function: Callable[..., int]) -> Callable[..., _Number]:
    def compute(*values: Fraction) -> _Number:
        if any(value.denominator != 1 for value in values):
            raise ValueError("whole numbers are needed")
        return _number(Fraction(function(*map(int, values))))

    return compute


def _floating(function: Callable[[float], float]) -> Callable[[Fraction], _Number]:
    def compute(value: Fraction) -> _Number:
        result = function(float(value))
        return _Number(Fraction(repr(result)) if abs(result) > 1e-15 else Fraction(0), rounded=True)

    return compute


_ANY = 1_000
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., _Number]]] = {
    "abs": (1, 1, _absolute),
    "round": (1, 2, _rounded),
    "floor": (1, 1, _whole_number(math.floor)),
    "ceil": (1, 1, _whole_number(math.ceil)),
    "min": (1, _ANY, lambda *values: _Number(min(values))),
    "max": (1, _ANY, lambda *values: _Number(max(values))),
    "sum": (1, _ANY, lambda *values: _number(sum(values, Fraction(0)))),
    "mean": (1, _ANY, lambda *values: _number(sum(values, Fraction(0)) / len(values))),
    "sqrt": (1, 1, _root),
    "exp": (1, 1, _exponential),
    "ln": (1, 1, _logarithm),
    "log": (1, 2, _logarithm),
    "log2": (1, 1, _logarithm_to(2)),
    "log10": (1, 1, _logarithm_to(10)),
    "sin": (1, 1, _floating(math.sin)),
    "cos": (1, 1, _floating(math.cos)),
    "tan": (1, 1, _floating(math.tan)),
    "asin": (1, 1, _floating(math.asin)),
    "acos": (1, 1, _floating(math.acos)),
    "atan": (1, 1, _floating(math.atan)),
    "degrees": (1, 1, _floating(math.degrees)),
    "radians": (1, 1, _floating(math.radians)),
    "factorial": (1, 1, _factorial),
    "gcd": (1, _ANY, _whole(lambda *values: reduce(math.gcd, values))),
    "lcm": (1, _ANY, _whole(lambda *values: reduce(math.lcm, values))),
}


def _called(name: str, values: Sequence[_Number]) -> _Number:
    if name not in _FUNCTIONS:
        hint = f"Functions are {', '.join(sorted(_FUNCTIONS))}."
        raise ToolFailure("invalid_parameters", f"Unknown function {name!r}.", hint)
    fewest, most, function = _FUNCTIONS[name]
    if not fewest <= len(values) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}" if most < _ANY else f"{fewest} or more"
        raise ToolFailure("invalid_parameters", f"{name} takes {wanted} arguments, not {len(values)}.")
    result = function(*(value.value for value in values))
    return _number(result.value, result.rounded or any(value.rounded for value in values))


def _read(number: _Number) -> Value:
    value = number.value
    if value.denominator == 1 and not number.rounded:
        return Value(str(value.numerator), rounded=False)
    exact = _finite(value.denominator) and not number.rounded
    if exact:
        wide = Context(prec=BITS)
        text = format(wide.divide(Decimal(value.numerator), Decimal(value.denominator)), "f")
        if len(text) <= MAX_CHARS:
            return Value(text, rounded=False)
    context = Context(prec=DIGITS if not number.rounded else 15)
    short = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    text = format(short, "f") if -10 < short.adjusted() < 30 else str(short)
    return Value(text, rounded=True)


def _finite(denominator: int) -> bool:
    """Return whether a fraction with this denominator is a finite decimal."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _too_large() -> ToolFailure:
    return ToolFailure(
        "validation_error", "A number in the expression is too large.", "Use smaller numbers or a logarithm."
    )


def _unexpected(token: str) -> ToolFailure:
    what = f"Unexpected {token!r}." if token else "The expression ends too early."
    return ToolFailure("invalid_parameters", what, "Check brackets and operators, such as (2 + 3) * 4 or 15% of 240.")


_SHORT = regex(r"(?!.*\*\*)[\d .+*/()-]{1,60}")
"""Sums and products that take less time than starting a thread."""


def calculator_tool(definition: Definition) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        expression = " ".join(args["expression"].split())
        value = evaluate(expression) if _SHORT.fullmatch(expression) else await asyncio.to_thread(evaluate, expression)
        sign = "≈" if value.rounded else "="
        return ToolResult(f"{expression} {sign} {value.text}", summary=f"{sign} {value.text}"[:60])

    return definition.tool(run)
