"""Letters and addresses that are not what they look like: homographs, hosts in disguise.

Pure. What a person is warned of before a call is put together in ``warnings``.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import LOOKALIKES, looks_like

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
MOST = 50
"""Addresses of one text that are looked at."""


def odd_words(text: str) -> Iterator[str]:
    """Words with letters of two scripts that look alike, and foreign words that read like one of ASCII."""
    if text.isascii():
        return
    for found in _MIXED.finditer(text):
        yield found[0]
    foreign = [word for word in _WORD.findall(text) if not word.isascii()]
    # A text in that language has letters that look like no others.
    if foreign and all(looks_like(word).isascii() for word in foreign):
        yield from (word for word in foreign if not _MIXED.search(word) and any(map(str.isalpha, word)))


def addresses(text: str) -> Iterator[str]:
    """The web addresses that stand in ``text``, the first of them."""
    for count, found in enumerate(_ADDRESS.finditer(text)):
        if count == MOST:
            return
        yield found[0]


def deceptions(address: str) -> Iterator[str]:
    """Why ``address`` may lead elsewhere than it seems to."""
    authority = re.split(r"[/?#]", address.split("://", 1)[1], maxsplit=1)[0]
    if "\\" in authority:
        yield "holds a backslash, so programs disagree where it leads"
    user, at, rest = authority.rpartition("@")
    host = re.sub(r":\d*$", "", rest).lower().rstrip(".")
    if at:
        seeming = unquote(user).split(":", 1)[0]
        yield (
            f"leads to {host}, not to {seeming}"
            if "." in seeming
            else f"logs in at {host} with what stands before the @"
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
    """What to say of a host that is a number, in whatever way it is written; empty for names and this machine."""
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
    """As every program reads it: the last part fills what is left, 0x is hexadecimal and 0 octal."""
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
