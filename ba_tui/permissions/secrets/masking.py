"""Known secret values, and placeholders of equal length that replace secrets in a text.

Pure. ``masked_copies`` splits files in which every value is secret.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.scanner import find, looks_drawn

LEAST = 6
"""Minimum characters of a kept value: shorter ones occur in any text by chance."""
LONGEST = 20_000
"""Maximum characters of a kept value."""
MOST = 5_000
"""Number of values that are kept. A workspace with more has data files with secret names."""

_WORDS = """
    access account active address admin administrator always amqp anonymous api apikey apple application async auto
    azure backend bearer bucket changeme client cluster cognito config console custom database datadog debug default
    defaults deploy dev develop developer development disable disabled docker domain dummy email enable enabled english
    error example example.com fake false file files frontend gemini google guest health host hostname http https
    info invalid info@example.com integration internal json kafka latest legacy letmein level local localdev localhost
    logging login london main manual master memory memcached message method mongo mongodb mssql mysql never newrelic
    nginx nobody none null number object off online openai option oracle package passwd password path pending
    placeholder plain port postgres postgresql preview primary private prod production profile project protected public
    python rabbitmq react read readonly redis region remote replica required root sandbox schema secondary secret
    secrets section sender sentry server service session silent simple smtp socket source sqlite sqlite3 ssl stage
    staging standard static status storage string stripe strict success support system target template test testing
    tester text time timeout title token true twilio undefined unknown update user user@example.com username utf-8 utf8
    value values verbose version warning warnings website windows worker world yarn yes
"""
_TRIVIAL = frozenset(_WORDS.split())
_PLAIN = regex(
    r"0+|\d{1,5}|\d+0{3}|v?\d+(?:\.\d+){1,3}|(?P<same>.)(?P=same)+|[a-z]{2}-[a-z]+-\d|\d{4}-\d\d-\d\d"
    r"|(?:https?|ftp)://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d+)?/?|(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d+)?"
    r"|\$\{?\w+\}?|<[^<>]*>|\.{0,2}(?:/[a-z]{1,12}){1,4}/?"
)
"""Numbers, versions, regions, dates, local addresses, references and folders, which are never secrets."""


class KnownSecrets:
    """The secret values of a session's workspace with their kinds; results of tools are searched for them. Thread-safe.

    Values are never logged: ``repr`` shows only their number.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Mapping[str, str] = MappingProxyType({})
        self._version = 0

    @property
    def version(self) -> int:
        """A counter that grows whenever the values change."""
        return self._version

    def add(self, values: Iterable[str], kind: str) -> None:
        """Add the ``values`` that can be distinguished from ordinary text. The first ``kind`` of a value stays."""
        told = {value: kind for value in dict.fromkeys(map(str.strip, values)) if is_telling(value)}
        with self._lock:
            new = {value: kind for value, kind in told.items() if value not in self._values}
            room = MOST - len(self._values)
            if new and room > 0:
                kept = dict(list(new.items())[:room])
                self._values = MappingProxyType({**self._values, **kept})
                self._version += 1

    def values(self) -> Mapping[str, str]:
        """Return the kind of each known value, as an immutable snapshot."""
        return self._values

    def __repr__(self) -> str:
        return f"KnownSecrets({len(self._values)} values)"


def is_telling(value: str) -> bool:
    """Return whether a secret value can be recognised in other text: long enough, and no common word or number."""
    if not LEAST <= len(value) <= LONGEST or value.lower() in _TRIVIAL:
        return False
    return not _PLAIN.fullmatch(value)


@frozen
class MaskPlaces:
    """``copies``: the folder of masked copies (None: temporary files). ``kept``: the file of files without secrets
    (None: no file). ``known`` learns masked values. ``searched``: whether texts are searched for secrets."""

    copies: Path | None = None
    kept: Path | None = None
    known: KnownSecrets = field(default_factory=KnownSecrets)
    searched: bool = True


@frozen
class ScanOrder:
    """The arguments of ``content_process``. ``kept``: the file that stores digests of files without secrets."""

    roots: tuple[str, ...]
    skipped: tuple[str, ...]
    copies: str
    kept: str

    def text(self) -> str:
        return json.dumps([self.roots, self.skipped, self.copies, self.kept])

    @staticmethod
    def read(text: str) -> ScanOrder:
        roots, skipped, copies, kept = json.loads(text)
        return ScanOrder(tuple(roots), tuple(skipped), copies, kept)


MARK = "masked-by-ba"
"""The beginning of a placeholder that is long enough for it."""
VALUE = "value"
LINE = 20
"""Minimum characters of a line of a longer value that is a secret on its own."""

_NUMBER = regex(r"[+-]?\d[\d_.:TZeE+ -]*")
_CONSTANT = regex(r"true|false|null|none|yes|no|on|off|~|nan|[+-]?inf", re.IGNORECASE)
_SECRET_KEY = regex(
    r"pass|pwd|secret|token|key|auth|cred|private|salt|sign|cert|dsn|webhook|cookie|session|login|pin\b|hash",
    re.IGNORECASE,
)
_ORDINARY = regex(
    r"[A-Za-z]+(?:[ _.,-]+[A-Za-z]+)*[.!]?|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?"
    r"|\w+://[\w.:-]+(?:/[A-Za-z_.-]*)*|[~.]{0,2}(?:/[\w.@-]+)+/?|[\d.:/TZ+-]+"
)
"""Words, e-mail addresses, hosts, addresses without a login, paths, dates: they occur in ordinary text."""
_COMMENT_VALUE = regex(r"(?P<head>[#;/ \t*]*(?:export[ \t]+)?[\w.-]{1,100}[ \t]*[=:][ \t]*)(?P<value>\S.*)")


@frozen
class MaskedText:
    """A masked copy of a file's bytes; ``values``: the replaced secrets with their kinds."""

    data: bytes
    values: tuple[tuple[str, str], ...] = ()


class Masker:
    """Builds one masked text and collects the values that it replaced."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def value(self, text: str, key: str = "") -> str:
        """Return a placeholder for a value of a file in which every value is secret; true, false and null stay."""
        inner = text.strip()
        if not inner or _CONSTANT.fullmatch(inner):
            return text
        at = text.index(inner)
        head, tail = text[:at], text[at + len(inner) :]
        self._note(inner, key)
        return head + "\n".join(fill(line) for line in inner.split("\n")) + tail

    def looks(self, text: str) -> str:
        """Return ``text`` with placeholders for text that looks like a secret."""
        parts: list[str] = []
        last = 0
        for secret in find(text):
            found = text[secret.start : secret.end]
            if not found.startswith(MARK):
                self.values.setdefault(found, secret.kind)
            parts += (text[last : secret.start], "\n".join(fill(line) for line in found.split("\n")))
            last = secret.end
        return "".join((*parts, text[last:]))

    def comment(self, text: str) -> str:
        """Return a comment with placeholders: commented-out values, known values, and text that looks like a secret."""
        if match := _COMMENT_VALUE.fullmatch(text):
            return match["head"] + self.value(match["value"], match["head"])
        for value in self.values:
            if is_telling(value) and value in text:
                text = text.replace(value, fill(value))
        return self.looks(text)

    def _note(self, value: str, key: str) -> None:
        for secret in find(f'{key}="{value}"' if '"' not in value else value):
            piece = (f'{key}="{value}"' if '"' not in value else value)[secret.start : secret.end]
            self.values.setdefault(piece, secret.kind)
        if value.startswith("-----") or value.endswith("-----"):
            # The first and last line of a key reveal nothing.
            value = value.strip("-") if "\n" in value else ""
        drawn = looks_drawn(value) and not _NUMBER.fullmatch(value)
        if value and (_SECRET_KEY.search(key) or drawn or not _ORDINARY.fullmatch(value)):
            plain = _unescaped(value)
            lines = [line.strip() for line in plain.split("\n")] if "\n" in plain else []
            told = (value, plain, *(line for line in lines if len(line) >= LINE and not line.startswith("-----")))
            self.values.update({text: self.values.get(text, VALUE) for text in told})


def masked_places(data: bytes) -> MaskedText | None:
    """Mask text that looks like a secret; None if none does. The copy has the length of ``data``."""
    text = decoded(data)
    if text is None:
        return None
    masking = Masker()
    made = masking.looks(text).encode("utf-8", "surrogateescape")
    return MaskedText(made, tuple(masking.values.items())) if masking.values and made != data else None


def decoded(data: bytes) -> str | None:
    """Return the text of a file; None if it is not text."""
    if b"\0" in data:
        return None
    text = data.decode("utf-8", "surrogateescape")
    broken = sum(1 for letter in text if "\udc80" <= letter <= "\udcff") if not text.isascii() else 0
    return text if broken <= len(text) // 10 else None


def blank(data: bytes) -> bytes:
    """Return as many bytes, of which only line ends are kept."""
    if b"\0" in data:
        return MARK.encode().ljust(len(data), b"x")[: len(data)]
    return b"\n".join(b"x" * len(line.rstrip(b"\r")) + line[len(line.rstrip(b"\r")) :] for line in data.split(b"\n"))


def fill(value: str) -> str:
    """Return a placeholder of the same size in bytes. Digits stay digits, so that a port or date remains one."""
    bare = value.rstrip("\r")
    end = value[len(bare) :]
    if _NUMBER.fullmatch(bare):
        return re.sub(r"\d", "1", bare) + end
    size = len(bare.encode("utf-8", "surrogateescape"))
    return (MARK.ljust(size, "x") if size >= len(MARK) else "x" * size) + end


def _unescaped(value: str) -> str:
    if "\\" not in value:
        return value
    try:
        return str(json.loads(f'"{value}"', strict=False))
    except ValueError:
        return value.replace("\\n", "\n")
