"""What parts of a rule match: command words, domains, and arguments; and how long a rule waits for an answer.

Which calls a whole rule covers is decided in ``rule``.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from regex import Pattern

    from ba_tui.permissions.shell.simple_commands import ResolvedCommand


OnTimeout: TypeAlias = Literal["deny", "allow", "escalate"]
ON_TIMEOUT: tuple[OnTimeout, ...] = ("deny", "allow", "escalate")
KEYS = ("when", "timeout", "on_timeout")
TESTS = ("regex", "min", "max", "equals")
LONGEST_PATTERN = 500
LONGEST_WAIT = 86_400
PATIENCE = 0.05
"""Seconds that a regular expression may take; after that the result is unknown."""

Plain: TypeAlias = str | float | bool


class Misfit(ValueError):
    """An error in a rule's terms: ``key: expected …, got …``."""


@frozen
class RuleCondition:
    """A test of the argument ``name``; a dot separates nested fields."""

    name: str
    test: Literal["regex", "min", "max", "equals"]
    value: Plain

    def holds(self, args: Mapping[str, Any]) -> bool | None:
        """Return the result; None if it is unknown: the argument is no number, the expression takes too long."""
        given = _at(args, self.name)
        if "." in self.name and self.name in args and _below(args, self.name) is not None:
            # Two arguments have that name, and the tool may use either.
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
    """``when``: conditions that must all hold. ``timeout`` in seconds; None waits as long as the user interface
    does."""

    when: tuple[RuleCondition, ...] = ()
    timeout: float | None = None
    on_timeout: OnTimeout = "deny"

    def hold(self, args: Mapping[str, Any], *, doubt: bool) -> bool:
        """Return whether every condition holds; unknown results count as ``doubt``."""
        return all(doubt if (held := condition.holds(args)) is None else held for condition in self.when)


NO_TERMS = Terms()


def read_terms(text: str) -> Terms:
    """Parse terms from JSON, the format of ``RuleLine.terms``.

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
        raise Misfit("on_timeout: expected a timeout as well")
    return Terms(tuple(_conditions(terms.get("when", {}))), timeout, on_timeout)


def terms_of(entry: Mapping[str, Any]) -> str:
    """Return the JSON for ``RuleLine.terms`` of a rule that a file defines as a group."""
    rest = {key: value for key, value in entry.items() if key != "rule"}
    return json.dumps(rest, sort_keys=True, ensure_ascii=False, default=str) if rest else ""


def terms_text(terms: Terms) -> str:
    """Return terms as JSON, the inverse of ``read_terms``."""
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
    return clipped(repr(value), 60)


ANY = ("*", ":*")


@lru_cache(maxsize=512)
def rule_words(pattern: str) -> tuple[tuple[str, ...], bool] | None:
    """Return the words of ``git diff:*`` and whether more may follow; None if they can't be parsed as words."""
    if pattern in ANY:
        return (), True
    more = pattern.endswith((":*", " *"))
    try:
        words = tuple(shlex.split(pattern[:-2] if more else pattern))
    except ValueError:
        return None
    return (words, more) if words else None


def pattern_problem(pattern: str, verdict: str) -> str:
    """Return why ``pattern`` is invalid for commands; empty if valid. Strict rules may have wildcards anywhere."""
    read = rule_words(pattern)
    if verdict != "allow":
        return ""
    if read is None:
        return "" if "*" not in pattern else "expected words in front of the *"
    words, more = read
    if more and any("*" in word for word in words):
        return "* may only be at the end, as in git diff:*"
    return "" if more or "*" not in pattern else "* may only be at the end, as in git diff:*"


def permits(pattern: str | None, command: ResolvedCommand) -> bool:
    """Return whether an allow rule covers ``command``. Pattern None covers every command whose words are known."""
    if command.stops or command.unsure:
        return False
    if pattern is None or pattern in ANY:
        return not command.outside and None not in command.words
    read = rule_words(pattern)
    if read is None:
        return False
    words, more = read
    if not more:
        # Words don't tell what the command reads from a pipe; only a rule for the whole command does.
        return command.words == words and not command.takes
    count = len(words)
    if command.words[:count] != words or command.outside or (command.writes and not empties(command)):
        return False
    return not any(surplus.binding and surplus.at >= count for surplus in command.surplus)


_EMPTYING = frozenset({"rm", "rmdir", "unlink", "mkdir", "touch"})
"""Programs that write no text: a rule with any arguments means files of the workspace."""


def empties(command: ResolvedCommand) -> bool:
    """Return whether ``command`` only deletes files of the workspace or creates empty ones, none of them protected."""
    program = (command.plain or ("",))[0]
    plain = all(seen.inside and not (seen.guarded or seen.secret or "." in seen.places) for seen in command.writes)
    return program in _EMPTYING and plain and not command.redirected


def names_all(pattern: str | None, command: ResolvedCommand) -> bool:
    """Return whether an allow rule covers ``command`` including the files it writes, because it states every word."""
    if not permits(pattern, command):
        return False
    if pattern is None or pattern in ANY:
        return True
    return not command.redirected and not (rule_words(pattern) or ((), True))[1]


def catches(pattern: str, command: ResolvedCommand) -> bool:
    """Return whether a strict rule matches ``command``: the program by its plain name, then any arguments."""
    spelled = {_spelling(words) for words in _wordings(command)}
    if pattern in ANY:
        return True
    if "*" in pattern.removesuffix(":*").removesuffix(" *") or "?" in pattern:
        return any(fnmatchcase(" ".join(words), pattern) for words in spelled)
    read = rule_words(pattern)
    wanted = read[0] if read else tuple(pattern.split())
    wanted = _spelling(wanted)
    return any(words[: len(wanted)] == wanted for words in spelled)


def _wordings(command: ResolvedCommand) -> list[tuple[str | None, ...]]:
    found = [command.words, command.plain] if command.plain else [command.words]
    for at, _ in enumerate(command.wrappers):
        found.append((*command.wrappers[at:], *command.words))
    return [words for words in found if words]


def _spelling(words: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the words with the program's plain name. Words that are unknown before it runs match nothing."""
    texts = tuple("\0" if word is None else word for word in words)
    return (texts[0].rsplit("/", 1)[-1], *texts[1:]) if texts else ()


DOMAIN = "domain:"
_NAME = regex(r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|[0-9a-f:.]+")
_ODD = regex(r"[\s\\\x00-\x1f\x7f]")
_PIECES = regex(r"[\\?#@\s]+")


def domain_problem(pattern: str) -> str:
    """Return why ``domain:…`` names no domain; empty if it does."""
    name = _ascii(pattern.removeprefix(DOMAIN))
    if not name or not _NAME.fullmatch(name):
        return "expected the name of a host after domain:, such as docs.python.org or *.python.org"
    return ""


def domain_of(address: str) -> str:
    """Return the pattern for the host of ``address``; empty if the host is unclear."""
    host = _host(address)
    return DOMAIN + host if host and not domain_problem(DOMAIN + host) else ""


def is_of(address: str, pattern: str) -> bool:
    """Return whether ``address`` certainly leads to the domain: the name itself or below it (``*.``: only below it)."""
    host = _host(address)
    return bool(host) and _fits(host, _ascii(pattern.removeprefix(DOMAIN)))


def may_be_of(address: str, pattern: str) -> bool:
    """Return whether any reading of ``address`` leads to the domain; for strict rules, which must not be evaded."""
    name = _ascii(pattern.removeprefix(DOMAIN)).removeprefix("*.")
    authority = unquote(address).strip().split("://", 1)[-1].lstrip("/").split("/", 1)[0]
    hosts = [_host(address), *(re.sub(r":\d*$", "", _ascii(piece)) for piece in _PIECES.split(authority)[:8])]
    return any(host and _fits(host, name) for host in hosts)


def _fits(host: str, name: str) -> bool:
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name[1:])
    return host == name or (host.endswith(f".{name}") and not name[-1:].isdigit() and ":" not in name)


def _host(address: str) -> str:
    """Return the host that every program would read from ``address``; empty if some may read another one."""
    if _ODD.search(address.strip()) or "@" in address.split("?")[0].split("#")[0]:
        return ""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return ""
    return _ascii(host) if parts.scheme.lower() in {"http", "https"} else ""


def _ascii(name: str) -> str:
    star, bare = ("*.", name[2:]) if name.startswith("*.") else ("", name)
    try:
        return star + bare.strip().rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        return ""


StatementKind: TypeAlias = Literal["read", "write", "ddl", "unknown"]


KINDS: tuple[StatementKind, ...] = ("read", "write", "ddl", "unknown")
