"""What a rule says beside its text: conditions on arguments, how long it waits for an answer and what then.

Which calls a rule's text covers stands in ``rules``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from regex import Pattern

OnTimeout: TypeAlias = Literal["deny", "allow", "escalate"]
ON_TIMEOUT: tuple[OnTimeout, ...] = ("deny", "allow", "escalate")
KEYS = ("when", "timeout", "on_timeout")
TESTS = ("regex", "min", "max", "equals")
LONGEST_PATTERN = 500
LONGEST_WAIT = 86_400
PATIENCE = 0.05
"""Seconds that a regular expression may take; one that takes longer can't be told."""

Plain: TypeAlias = str | float | bool


class Misfit(ValueError):
    """Something in a rule's terms is wrong: ``key: expected …, got …``."""


@frozen
class RuleCondition:
    """One test of the argument ``name``; a dot leads into a group."""

    name: str
    test: Literal["regex", "min", "max", "equals"]
    value: Plain

    def holds(self, args: Mapping[str, Any]) -> bool | None:
        """None when it can't be told: the argument is no number, the expression takes too long."""
        given = _at(args, self.name)
        if "." in self.name and self.name in args and _below(args, self.name) is not None:
            # Two arguments go by that name, and who is called may look at either.
            return None
        if given is None:
            return False
        match self.test:
            case "equals":
                return _alike(given, self.value)
            case "regex":
                return _found(str(self.value), given if isinstance(given, str) else json.dumps(given, default=str))
            case "min" | "max":
                number = _number(given)
                if number is None:
                    return None
                return number >= float(self.value) if self.test == "min" else number <= float(self.value)


@frozen
class Terms:
    """``when``: all of it must hold. ``timeout`` in seconds, None for as long as the face waits."""

    when: tuple[RuleCondition, ...] = ()
    timeout: float | None = None
    on_timeout: OnTimeout = "deny"

    def hold(self, args: Mapping[str, Any], *, doubt: bool) -> bool:
        """Whether every condition holds; ``doubt`` is what counts where that can't be told."""
        return all(doubt if (held := condition.holds(args)) is None else held for condition in self.when)


NO_TERMS = Terms()


def read_terms(text: str) -> Terms:
    """Terms from JSON, as ``RuleLine.terms`` carries them.

    Raises:
        Misfit: names the key and what was expected.
    """
    if not text:
        return NO_TERMS
    data: Any = json.loads(text)
    if not isinstance(data, dict):
        raise Misfit(f"expected a group of terms, got {_shown(data)}")
    terms = cast("dict[str, Any]", data)
    for key in terms:
        if key not in KEYS:
            raise Misfit(f"{key}: unknown; expected one of rule, {', '.join(KEYS)}")
    on_timeout = terms.get("on_timeout", "deny")
    if on_timeout not in ON_TIMEOUT:
        raise Misfit(f"on_timeout: expected one of {', '.join(ON_TIMEOUT)}, got {_shown(on_timeout)}")
    timeout = _number(terms["timeout"], texts=False) if "timeout" in terms else None
    if "timeout" in terms and (timeout is None or not 0 < timeout <= LONGEST_WAIT):
        raise Misfit(f"timeout: expected seconds from above 0 to {LONGEST_WAIT}, got {_shown(terms['timeout'])}")
    if "on_timeout" in terms and timeout is None:
        raise Misfit("on_timeout: expected a timeout beside it")
    return Terms(tuple(_conditions(terms.get("when", {}))), timeout, on_timeout)


def terms_of(entry: Mapping[str, Any]) -> str:
    """The JSON for ``RuleLine.terms`` of a rule that stands in a file as a group."""
    rest = {key: value for key, value in entry.items() if key != "rule"}
    return json.dumps(rest, sort_keys=True, ensure_ascii=False, default=str) if rest else ""


def terms_text(terms: Terms) -> str:
    """The opposite of ``read_terms``."""
    when: dict[str, dict[str, Plain]] = {}
    for condition in terms.when:
        when.setdefault(condition.name, {})[condition.test] = condition.value
    said: dict[str, Any] = {"when": when} if when else {}
    if terms.timeout is not None:
        said |= {"timeout": terms.timeout, "on_timeout": terms.on_timeout}
    return terms_of(said)


def _conditions(when: Any) -> Iterator[RuleCondition]:
    if not isinstance(when, dict):
        raise Misfit(f"when: expected a group of arguments, got {_shown(when)}")
    for name, tests in cast("dict[str, Any]", when).items():
        if not isinstance(tests, dict) or not tests:
            raise Misfit(f"when.{name}: expected one of {', '.join(TESTS)} and its value, got {_shown(tests)}")
        for test, value in cast("dict[str, Any]", tests).items():
            yield _condition(name, test, value)


def _condition(name: str, test: str, value: Any) -> RuleCondition:
    where = f"when.{name}.{test}"
    match test:
        case "regex":
            if not isinstance(value, str) or not value or len(value) > LONGEST_PATTERN:
                raise Misfit(
                    f"{where}: expected an expression of at most {LONGEST_PATTERN} characters, got {_shown(value)}"
                )
            _compiled(value, where)
            return RuleCondition(name, "regex", value)
        case "min" | "max":
            number = _number(value, texts=False)
            if number is None:
                raise Misfit(f"{where}: expected a number, got {_shown(value)}")
            return RuleCondition(name, test, number)
        case "equals":
            if not isinstance(value, str | int | float):
                raise Misfit(f"{where}: expected a text, a number or true or false, got {_shown(value)}")
            return RuleCondition(name, "equals", value)
        case _:
            raise Misfit(f"{where}: unknown; expected one of {', '.join(TESTS)}")


@lru_cache(maxsize=256)
def _compiled(pattern: str, where: str = "regex") -> Pattern[str]:
    import regex  # noqa: PLC0415 - most rules need none

    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise Misfit(f"{where}: expected a regular expression: {error}") from error


def _found(pattern: str, text: str) -> bool | None:
    try:
        return _compiled(pattern).search(text, timeout=PATIENCE) is not None
    except (TimeoutError, MemoryError):
        return None


def _at(args: Mapping[str, Any], name: str) -> Any:
    return args[name] if name in args else _below(args, name)


def _below(args: Mapping[str, Any], name: str) -> Any:
    value: Any = args
    for part in name.split("."):
        value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, Mapping) else None
    return value


def _number(value: Any, *, texts: bool = True) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | (str if texts else float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _alike(given: Any, wanted: Plain) -> bool:
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    return type(given) in {int, float, str} and given == wanted


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
