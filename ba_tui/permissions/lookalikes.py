"""Detects letters and addresses that imitate others, hidden characters and disguised hosts, and warns of them.

Pure. Whether to ask is decided in ``policy``.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import LOOKALIKES, hidden_in, looks_like, paintable
from ba_tui.core.text.wording import clipped

_ODD = "".join(map(chr, LOOKALIKES))
_MIXED = regex(rf"[\w-]{{0,60}}(?:[A-Za-z][{_ODD}]|[{_ODD}][A-Za-z])[\w-]{{0,60}}")
_WORD = regex(r"\w{1,80}")
_ADDRESS = regex(r"(?:https?|ftps?|wss?|ssh|git(?:\+\w{1,8})?)://[^\s\"'<>`|]{1,2000}", re.IGNORECASE)
_SCRIPTS = {"CYRILLIC": "Cyrillic", "GREEK": "Greek", "ARMENIAN": "Armenian", "CHEROKEE": "Cherokee"}
_NUMBER = regex(r"(?:0x[0-9a-f]{1,16}|[0-9]{1,20})", re.IGNORECASE)
_IMITATED = (
    *("github.com", "gitlab.com", "google.com", "microsoft.com", "apple.com", "amazon.com", "paypal.com", "pypi.org"),
    *("npmjs.com", "npmjs.org", "python.org", "openai.com", "anthropic.com", "docker.com", "stackoverflow.com"),
    *("githubusercontent.com", "bitbucket.org", "huggingface.co", "debian.org", "ubuntu.com", "mozilla.org"),
    *("crates.io", "rubygems.org", "cloudflare.com", "facebook.com", "slack.com", "dropbox.com", "stripe.com"),
)
_DIGITS = str.maketrans("01", "ol")
MOST_ADDRESSES = 50
"""Addresses of one text that are checked."""


def odd_words(text: str) -> Iterator[str]:
    """Yield words that mix similar letters of two scripts, and foreign words that read like ASCII ones."""
    if text.isascii():
        return
    for found in _MIXED.finditer(text):
        yield found[0]
    foreign = [word for word in _WORD.findall(text) if not word.isascii()]
    # A genuine text in that language also has letters without an ASCII lookalike.
    if foreign and all(looks_like(word).isascii() for word in foreign):
        yield from (word for word in foreign if not _MIXED.search(word) and any(map(str.isalpha, word)))


def addresses(text: str) -> Iterator[str]:
    """Yield the web addresses in ``text``, up to ``MOST_ADDRESSES``."""
    for count, found in enumerate(_ADDRESS.finditer(text)):
        if count == MOST_ADDRESSES:
            return
        yield found[0]


def deceptions(address: str) -> Iterator[str]:
    """Yield reasons why ``address`` may lead to another host than it seems to."""
    authority = re.split(r"[/?#]", address.split("://", 1)[1], maxsplit=1)[0]
    if "\\" in authority:
        yield "contains a backslash, so programs disagree where it leads"
    user, at, rest = authority.rpartition("@")
    host = re.sub(r":\d*$", "", rest).lower().rstrip(".")
    if at:
        seeming = unquote(user).split(":", 1)[0]
        yield (
            f"leads to {host}, not to {seeming}" if "." in seeming else f"logs in at {host} with the text before the @"
        )
    if "%" in host:
        host = unquote(host)
        yield f"hides its host, which is {host}"
    yield from _odd_host(host)


def _odd_host(host: str) -> Iterator[str]:
    bare = host.strip("[]")
    if number := _as_number(bare):
        yield number
        return
    shown = ".".join(map(_decoded, re.split("[.。．｡]", bare)))
    if shown != bare:
        yield f"its host reads {shown}"
    for label in shown.split("."):
        yield from _odd_label(label)
    looks = looks_like(shown).lower()
    if looks != shown and looks.isascii():
        yield f"looks like {looks}, but is another host"
    for known in _IMITATED:
        end = bare == known or bare.endswith(f".{known}")
        if not end and (looks.translate(_DIGITS).replace("rn", "m") == known):
            yield f"imitates {known}"
            return
        if not end and re.search(rf"(?:^|\.){re.escape(known)}[.-]", bare):
            yield f"begins like {known}, but leads to {'.'.join(bare.split('.')[-2:])}"
            return


def _odd_label(label: str) -> Iterator[str]:
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in label if letter.isalpha()}
    if others := [name for key, name in _SCRIPTS.items() if key in scripts and "LATIN" in scripts]:
        yield f"“{label}” mixes Latin and {others[0]} letters"


def _as_number(host: str) -> str:
    """Return a warning for a numeric host in any notation; empty for names and this machine."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        parts = host.split(".")
        if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
            return ""
        return f"writes the number of a machine in an unusual way: {_dotted(parts) or host}"
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return "" if (mapped or ip).is_loopback and not mapped else f"leads to a number, {mapped or ip}, not to a name"


def _dotted(parts: list[str]) -> str:
    """Return the dotted form as programs compute it: the last part fills the rest, 0x is hexadecimal, 0 is octal."""
    try:
        values = [
            int(part, 16 if part[:2].lower() == "0x" else 8 if part[0] == "0" and len(part) > 1 else 10)
            for part in parts
        ]
        total = values[-1] + sum(value << (24 - 8 * index) for index, value in enumerate(values[:-1]))
        return str(ipaddress.IPv4Address(total))
    except ValueError:
        return ""


def _decoded(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


MOST_WARNINGS = 8
LONGEST = 200_000
_SHOWN = 60
_DEEPEST = 20
_RUN = ("command", "code")
_SPACES = regex("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")


def warnings_of(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return warnings to show with the arguments of a call, one per line, at most ``MOST_WARNINGS``."""
    found: dict[str, None] = {}
    for name, text in _texts(args, ""):
        for line in _about(name, text[:LONGEST]):
            found[paintable(line, newlines=False, reveal=True)] = None
            if len(found) > MOST_WARNINGS:
                return (*list(found)[:MOST_WARNINGS], "There are more like this.")
    return tuple(found)


def _about(name: str, text: str) -> Iterator[str]:
    if not text.isascii() or not text.isprintable():
        if hidden := hidden_in(text):
            yield f"{name} contains hidden characters: {', '.join(map(_named, hidden[:4]))}"
        if name in _RUN and (space := _SPACES.search(text)):
            yield f"{name} holds {_named(space[0])}, which only looks like a space"
        for word in dict.fromkeys(odd_words(text)):
            yield f"“{word[:_SHOWN]}” in {name} only looks like “{looks_like(word)[:_SHOWN]}”: {_foreign(word)}"
    for address in addresses(text):
        for reason in deceptions(address):
            yield f"{clipped(address, _SHOWN)} {reason}"


def _foreign(word: str) -> str:
    odd = next((letter for letter in word if not letter.isascii()), "")
    return _named(odd) if odd else "other letters"


def _named(letter: str) -> str:
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'CONTROL' if ord(letter) < 160 else 'UNNAMED')}"


def _texts(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every text in the arguments, including field names, with the name of its field."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, item in cast("Mapping[Any, Any]", value).items():
            if not str(key).isascii():
                yield "a field's name", str(key)
            yield from _texts(item, str(key)[:40], depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for item in cast("list[Any]", value):
            yield from _texts(item, name, depth + 1)
