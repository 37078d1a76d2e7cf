"""Finds secrets in text by their looks, and takes them out: keys of known vendors, private keys, passwords, tokens.

Pure. Which files hold secrets is a matter of ``paths``; what is done about a secret is decided where text goes out.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from itertools import islice
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.shapes import Shape, shapes

LONGEST = 250
MOST_BLOBS = 200
FEW = 400
"""Characters of a text in which pairs of them are sooner looked up than a hundred beginnings searched for."""
LARGE = 64_000
"""Characters beyond which looking takes longer than a frame: do it off the loop."""
_LOWER = {code: code + 32 for code in range(65, 91)}


@frozen
class Secret:
    """Characters ``start`` to ``end`` of the text are a secret of this ``kind`` (``GitHub token``). ``value``: the
    known value that they are a piece or an encoding of, empty for one that was found by its looks."""

    start: int
    end: int
    kind: str
    value: str = field(default="", repr=False)


@frozen
class _Named:
    """How secrets look that only what stands around them gives away."""

    assigned: re.Pattern[str]
    paging: re.Pattern[str]
    flagged: re.Pattern[str]
    bearer: re.Pattern[str]
    login: re.Pattern[str]
    placeholder: re.Pattern[str]
    reference: re.Pattern[str]
    cookie: re.Pattern[str]
    uuid: re.Pattern[str]


_WORDS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "api-key", "private_key"),
    *("privatekey", "access_key", "accesskey", "account_key", "auth_key", "client_key", "encryption_key"),
    *("signing_key", "_pass"),
)
_BLOB = regex(r"(?<![\w+/])[A-Za-z0-9+/]{16,4000}+={0,2}+")
_LOGIN_NAME = regex(r"auth[\"']?\s{0,3}[:=]\s{0,3}[\"']?$")
_LONGER = regex(r"[A-Za-z0-9_~+/.%=-]{0,4000}")
_PASSWORDS = ("passw", "passphrase", "pwd", "_pass")


@cache
def _named() -> _Named:
    """Compiled when a text holds one of the words: most hold none."""
    return _Named(
        assigned=re.compile(
            r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|(?:private|access|account|auth|client|encryption"
            r"|signing)_?key|_pass)(?![a-z]{3})[A-Za-z0-9_-]{0,30}+(?:\\?[\"'\]]){0,2}"
            r"\s{0,3}(?:=>|:=|==?|:|value\s?=|>(?=[^<>\s]{6,250}</))\s{0,3}"
            r"(?:(?P<quote>\\?[\"'`])(?P<quoted>[^\"'`\s\\]{6,250}+)|(?P<bare>[A-Za-z0-9_~+/.!@#$%^*?-]{8,250}+={0,2}+)(?![(\[]))",
            re.IGNORECASE,
        ),
        paging=re.compile(
            r"(?:next|page|paging|continuation|cursor|sync|pagination|csrf|max|min|per|num)[_-]?$", re.IGNORECASE
        ),
        flagged=re.compile(
            r"(?:password|passwd|passphrase|secret|token|api-?key|(?:private|access|account|auth|client)-?key|pass)"
            r"[ \t]+(?:(?P<quote>[\"'])(?P<quoted>[^\"'\s]{6,250}+)|(?P<bare>[A-Za-z0-9_~+/.!@#$%^*?=-]{8,250}+))",
            re.IGNORECASE,
        ),
        bearer=re.compile(r"(?:bearer|basic|token)[ \t]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{16,2000}+)", re.IGNORECASE),
        login=re.compile(
            r"://(?:(?P<user>[^\s:/@?#\"'<>`]{0,200}+):(?P<password>[^\s/@\"'<>`]{1,250}+)"
            r"|(?P<token>[A-Za-z0-9_-]{20,250}+))@(?=[\w\[$])"
        ),
        placeholder=re.compile(
            r"example|placeholder|change[_-]?me|redacted|sample|dummy|x{5,}|\*{3}|\.{3}|…|[<>]|\$[({A-Z_]|\{\{|%\(|#\{"
            r"|^\$\w+$|^%\w+%$|^\{\w+\}$|\[secret: "
            r"|(?<![a-z])(?:your|yours|my|the|some|fake|test|demo|foo|insert|replace|todo|mock|stub|invalid)(?![a-z])",
            re.IGNORECASE,
        ),
        reference=re.compile(
            r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+|[A-Za-z]+|[a-z]+(?:[_-][a-z]+)+|[A-Z]+(?:_[A-Z]+)+|[/.~][\w./-]*"
        ),
        cookie=re.compile(r"[ ;]([\w.-]{1,80}+)=(?P<value>[A-Za-z0-9._~+/%=-]{24,4000}+)"),
        uuid=re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE),
    )


def find(text: str) -> tuple[Secret, ...]:
    """The secrets in ``text``, in order, none within another. Takes time in proportion to the length of the text."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_LOWER)
    found = [*_of_vendors(text), *_in_addresses(text), *_in_headers(text, lower), *_assigned(text, lower)]
    found += _encoded(text)
    return tuple(_apart(found))


def redact(text: str, hidden: str = "[secret: {kind}]") -> str:
    """``text`` with ``hidden`` in place of every secret."""
    return without(text, find(text), hidden)


def without(text: str, secrets: tuple[Secret, ...], hidden: str = "[secret: {kind}]") -> str:
    """``text`` with these of its secrets taken out."""
    parts: list[str] = []
    last = 0
    for secret in secrets:
        parts += (text[last : secret.start], hidden.replace("{kind}", secret.kind))
        last = secret.end
    return "".join((*parts, text[last:])) if parts else text


def redact_value(value: Any) -> Any:
    """A JSON value with its strings redacted; the name of a field counts as what stands before its value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _field(str(key), item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in cast("list[Any]", value)]
    return value


def _field(key: str, value: Any) -> Any:
    if isinstance(value, str) and len(value) <= LONGEST:
        head = f'{key}="'
        if any(
            secret.start == len(head) and secret.end == len(head) + len(value) for secret in find(f'{head}{value}"')
        ):
            return "[secret: value]"
    return redact_value(value)


def placeholders(text: str) -> tuple[str, ...]:
    """The marks that ``redact`` left in ``text``."""
    if "[secret: " not in text:
        return ()
    kinds = "|".join(sorted({re.escape(shape.kind) for shape in shapes()} | set(_KINDS)))
    return tuple(dict.fromkeys(re.findall(rf"\[secret: (?:{kinds})\]", text)))


_KINDS = ("encoded secret", "password", "token", "password in an address", "token in an address", "value")


def _apart(found: list[Secret]) -> Iterator[Secret]:
    end = -1
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if secret.start >= end:
            yield secret
            end = secret.end


def _places(text: str, start: str) -> Sequence[int]:
    # Most texts hold hardly any of the hundred beginnings, so a miss must cost nothing but the look.
    at = text.find(start)
    if at < 0:
        return ()
    places: list[int] = []
    while at >= 0:
        places.append(at)
        at = text.find(start, at + len(start))
    return places


@cache
def _beginnings() -> tuple[tuple[str, str, Shape], ...]:
    return tuple((start[:2], start, shape) for shape in shapes() for start in shape.starts)


@cache
def _pairs() -> frozenset[str]:
    return frozenset(pair for pair, _, _ in _beginnings())


def _possible(text: str) -> Iterable[tuple[str, Shape]]:
    """The beginnings that ``text`` may hold, in the order in which they win."""
    if len(text) > FEW:
        return ((start, shape) for _, start, shape in _beginnings())
    pairs = set(map(str.__add__, text, text[1:]))
    if _pairs().isdisjoint(pairs):
        return ()
    return ((start, shape) for pair, start, shape in _beginnings() if pair in pairs)


def _of_vendors(text: str) -> Iterator[Secret]:
    for start, shape in _possible(text):
        for at in _places(text, start):
            if start[0].isalnum() and at and (text[at - 1].isalnum() or text[at - 1] == "_"):
                continue
            if match := shape.rest.match(text, at + len(start)):
                if special := _SPECIAL.get(shape.kind):
                    yield from special(text, at, match)
                elif _real(match[0]):
                    yield Secret(at, match.end(), shape.kind)


def _private_key(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """With its last line, when that is there; one that is cut off counts too."""
    body = re.sub(r"[\r\n][ \t>|+]+", "\n", match[0].partition("-----")[2])
    if sum(character.isalnum() for character in body) < 40 or _named().placeholder.search(body):
        return
    # A backslash at the end belongs to what follows, such as an escaped quote.
    end = at + len(text[at : match.end()].rstrip("\\"))
    if text.startswith("-----END", end) and (close := text.find("-----", end + 8, end + 80)) >= 0:
        end = close + 5
    yield Secret(at, end, "private key")


def _telegram(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """With the bot's number, which stands before."""
    start = at
    while start > max(0, at - 17) and text[start - 1].isdecimal():
        start -= 1
    if 5 <= at - start <= 16 and (match[0].startswith("A") or looks_drawn(match[0])) and _real(match[0]):
        yield Secret(start, match.end(), "Telegram token")


def _discord(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """Its first part says a user's number; that of a user with two factors has none."""
    number = text[at : match.end()].partition(".")[0]
    try:
        said = base64.urlsafe_b64decode(number + "=" * (-len(number) % 4))
    except ValueError:
        said = b""
    if number == "mfa" or (said.isdigit() and 17 <= len(said) <= 20):
        yield Secret(at, match.end(), "Discord token")


def _terraform(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """With the fourteen characters that stand before."""
    if at >= 14 and text[at - 14 : at].isalnum():
        yield Secret(at - 14, match.end(), "Terraform token")


_SPECIAL = {
    "private key": _private_key,
    "Telegram token": _telegram,
    "Discord token": _discord,
    "Terraform token": _terraform,
}
"""Kinds that what stands around must confirm."""


def _in_addresses(text: str) -> Iterator[Secret]:
    for at in _places(text, "://"):
        match = _named().login.match(text, at)
        if match is None:
            continue
        if token := match["token"]:
            if _real(token) and looks_drawn(token):
                yield Secret(match.start("token"), match.end("token"), "token in an address")
            continue
        password, user = match["password"], match["user"]
        common = {user.lower(), "password", "pass", "passwd", "pwd", "secret", "user", "pw", "port", "token", "key"}
        if password.lower() not in common and not _named().placeholder.search(password) and len(set(password)) > 1:
            yield Secret(match.start("password"), match.end("password"), "password in an address")


def _in_headers(text: str, lower: str) -> Iterator[Secret]:
    for word in ("bearer", "basic", "token "):
        for at in _places(lower, word):
            match = _named().bearer.match(text, at)
            if word == "token " and "authorization" not in lower[max(0, at - 24) : at]:
                continue
            if match and _real(match["value"]) and looks_drawn(match["value"]):
                yield Secret(match.start("value"), match.end("value"), "token")
    end = 0
    for at in _places(lower, "cookie:"):
        if at < end:
            continue
        end = text.find("\n", at, at + 8_000)
        end = end if end >= 0 else at + 8_000
        for match in _named().cookie.finditer(text, at, end):
            if _real(match["value"]) and looks_drawn(match["value"]):
                yield Secret(match.start("value"), match.end("value"), "token")


def _assigned(text: str, lower: str) -> Iterator[Secret]:
    for word in _WORDS:
        for at in _places(lower, word):
            option = text[max(0, at - 24) : at].rpartition(" ")[2].startswith("--")
            named = _named()
            match = named.assigned.match(text, at) or (named.flagged.match(text, at) if option else None)
            if match is None or (word in {"token", "secret"} and named.paging.search(text, max(0, at - 16), at)):
                continue
            group = "quoted" if match["quoted"] else "bare"
            value, start = match[group], match.start(group)
            if named.uuid.fullmatch(value) or not _real(value):
                continue
            if word.startswith(_PASSWORDS):
                if _password(value, quoted=group == "quoted"):
                    yield Secret(start, _end(text, match, group), "password")
            elif looks_drawn(value) and not named.reference.fullmatch(value):
                yield Secret(start, _end(text, match, group), "token")


def _end(text: str, match: re.Match[str], group: str) -> int:
    """Where a value ends, which may be longer than what was looked at of it."""
    end = match.end(group)
    more = _LONGER.match(text, end) if end - match.start(group) >= LONGEST else None
    return more.end() if more else end


def _encoded(text: str) -> Iterator[Secret]:
    """What base64 hides: logins as ``user:password``, and whatever is a secret by its looks."""
    for match in islice(_BLOB.finditer(text), MOST_BLOBS):
        blob = match[0]
        try:
            words = base64.b64decode(blob + "=" * (-len(blob) % 4)).decode("ascii")
        except ValueError:
            continue
        if not words.isprintable() and not words.replace("\n", "").isprintable():
            continue
        login = len(words.partition(":")[2]) > 3 and _LOGIN_NAME.search(text, max(0, match.start() - 16), match.start())
        if login or any(True for _ in _of_vendors(words)):
            yield Secret(match.start(), match.end(), "encoded secret")


def _password(value: str, *, quoted: bool) -> bool:
    """Whether it can be one that people chose, and no word, name or path of a program."""
    if len(value) < 8 and not (quoted and any(letter.isdigit() for letter in value)):
        return False
    if _named().reference.fullmatch(value) and not (quoted and any(letter.isdigit() for letter in value)):
        return False
    return any(not letter.isalpha() for letter in value) and len(set(value)) > 3


def _real(value: str) -> bool:
    """Whether ``value`` is no stand-in such as ``sk-xxxx`` or ``<your key>``."""
    return len(set(value)) >= min(6, len(value) // 3 + 3) and not _named().placeholder.search(value)


def looks_drawn(value: str) -> bool:
    """Whether a value looks drawn by a machine: long enough, with digits, its letters spread evenly."""
    if len(value) < 16 or not any(letter.isdigit() for letter in value) or value.isdigit():
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy >= 3.0
