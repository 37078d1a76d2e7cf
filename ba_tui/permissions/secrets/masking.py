"""Replaces secrets in a file's text with placeholders of equal length, so that all other bytes stay where they are.

Pure. How files are taken apart in which every value is secret stands in ``secret_files``.
"""

from __future__ import annotations

import json
import re

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.known import is_telling
from ba_tui.permissions.secrets.scanner import find, looks_drawn

MARK = "masked-by-ba"
"""What a placeholder begins with where it is long enough."""
VALUE = "value"
LINE = 20
"""Characters of a line of a longer value that is a secret without the others."""

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
"""Words, e-mail addresses, hosts, addresses of sites without a login, paths, dates: they occur in ordinary text."""
_COMMENT_VALUE = regex(r"(?P<head>[#;/ \t*]*(?:export[ \t]+)?[\w.-]{1,100}[ \t]*[=:][ \t]*)(?P<value>\S.*)")


@frozen
class MaskedText:
    """A masked copy of a file's bytes; ``values``: the secrets that were replaced, each with its kind."""

    data: bytes
    values: tuple[tuple[str, str], ...] = ()


class Masking:
    """Builds one masked text, and remembers the values that it replaced."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def value(self, text: str, key: str = "") -> str:
        """A placeholder for one value of a file whose every value is secret; true, false and null stay."""
        inner = text.strip()
        if not inner or _CONSTANT.fullmatch(inner):
            return text
        at = text.index(inner)
        head, tail = text[:at], text[at + len(inner) :]
        self._note(inner, key)
        return head + "\n".join(fill(line) for line in inner.split("\n")) + tail

    def looks(self, text: str) -> str:
        """``text`` with placeholders for what looks like a secret."""
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
        """A comment, which stays unless it is a value that was set before."""
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
            # What begins and ends a key says nothing of it.
            value = value.strip("-") if "\n" in value else ""
        drawn = looks_drawn(value) and not _NUMBER.fullmatch(value)
        if value and (_SECRET_KEY.search(key) or drawn or not _ORDINARY.fullmatch(value)):
            plain = _unescaped(value)
            lines = [line.strip() for line in plain.split("\n")] if "\n" in plain else []
            told = (value, plain, *(line for line in lines if len(line) >= LINE and not line.startswith("-----")))
            self.values.update({text: self.values.get(text, VALUE) for text in told})


def masked_places(data: bytes) -> MaskedText | None:
    """Mask what looks like a secret in any other file; None when nothing does. The copy has the length of ``data``."""
    text = decoded(data)
    if text is None:
        return None
    masking = Masking()
    made = masking.looks(text).encode("utf-8", "surrogateescape")
    return MaskedText(made, tuple(masking.values.items())) if masking.values and made != data else None


def decoded(data: bytes) -> str | None:
    """The text of a file; None for one that is not text."""
    if b"\0" in data:
        return None
    text = data.decode("utf-8", "surrogateescape")
    broken = sum(1 for letter in text if "\udc80" <= letter <= "\udcff") if not text.isascii() else 0
    return text if broken <= len(text) // 10 else None


def blank(data: bytes) -> bytes:
    """As many bytes, which keep nothing but line ends."""
    if b"\0" in data:
        return MARK.encode().ljust(len(data), b"x")[: len(data)]
    return b"\n".join(b"x" * len(line.rstrip(b"\r")) + line[len(line.rstrip(b"\r")) :] for line in data.split(b"\n"))


def fill(value: str) -> str:
    """A placeholder that takes as many bytes. Digits stay digits, so that a port or a date is still one."""
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
