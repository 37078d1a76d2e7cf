"""Whether an address belongs to a domain that a rule names: ``domain:docs.python.org``, ``domain:*.python.org``.

Which addresses may be fetched at all is decided where they are fetched.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from ba_tui.core.text.patterns import regex

PREFIX = "domain:"
_NAME = regex(r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|[0-9a-f:.]+")
_ODD = regex(r"[\s\\\x00-\x1f\x7f]")
_PIECES = regex(r"[\\?#@\s]+")


def domain_problem(pattern: str) -> str:
    """Why ``domain:…`` names no domain; empty when it does."""
    name = _ascii(pattern.removeprefix(PREFIX))
    if not name or not _NAME.fullmatch(name):
        return "expected the name of a host after domain:, such as docs.python.org or *.python.org"
    return ""


def domain_of(address: str) -> str:
    """The rule's pattern for the host of ``address``; empty when that can't be told."""
    host = _host(address)
    return PREFIX + host if host and not domain_problem(PREFIX + host) else ""


def is_of(address: str, pattern: str) -> bool:
    """Whether ``address`` surely leads to the domain: its host is that name or below it (``*.``: only below it)."""
    host = _host(address)
    return bool(host) and _fits(host, _ascii(pattern.removeprefix(PREFIX)))


def may_be_of(address: str, pattern: str) -> bool:
    """Whether any reading of ``address`` leads there; for rules that must not be slipped past."""
    name = _ascii(pattern.removeprefix(PREFIX)).removeprefix("*.")
    authority = unquote(address).strip().split("://", 1)[-1].lstrip("/").split("/", 1)[0]
    hosts = [_host(address), *(re.sub(r":\d*$", "", _ascii(piece)) for piece in _PIECES.split(authority)[:8])]
    return any(host and _fits(host, name) for host in hosts)


def _fits(host: str, name: str) -> bool:
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name[1:])
    return host == name or (host.endswith(f".{name}") and not name[-1:].isdigit() and ":" not in name)


def _host(address: str) -> str:
    """The host that every program would take from ``address``; empty when some could take another."""
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
