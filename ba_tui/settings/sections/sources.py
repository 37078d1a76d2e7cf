"""Databases and engines that queries can run on: where they are, and what may be done there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlsplit

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.fields import Amount, FieldCheck, about
from ba_tui.settings.sections.group import SettingsGroup

SOURCE_NAME = regex(r"[A-Za-z_]\w{0,40}")
REFERENCE = regex(r"\$\{(?:keyring:)?[A-Za-z_][\w.-]*\}")
_RESULT = regex(r"(?i)r\d+")
_SECRET = regex(r"(?i)(?:password|passwd|pwd|token|secret|credential|private_?key|api_?key|access_?key)")


def source_name(name: str) -> str:
    """Return ``name``. Raises ValueError when a mention or a query could not name the source."""
    if not SOURCE_NAME.fullmatch(name) or _RESULT.fullmatch(name):
        raise ValueError("expected a name of letters, digits and _, such as warehouse")
    return name


def source_url(url: str) -> str:
    """Return ``url``. Raises ValueError when it has no scheme, or spells a password out; never shows the password."""
    if not regex(r"[a-z][a-z0-9+]*:").match(url):
        raise ValueError("expected an address such as postgresql://me:${PGPASSWORD}@host/database")
    if any(not REFERENCE.fullmatch(secret) for secret in _secrets(url)):
        raise ValueError("expected no password in the settings; write ${VARIABLE} or ${keyring:NAME} in its place")
    return url


def _secrets(url: str) -> Iterator[str]:
    """What stands in ``url`` where a password or token belongs."""
    # A reference may hold signs that end a part of an address.
    plain = REFERENCE.sub(lambda found: f"${{{'x' * (len(found[0]) - 3)}}}", url)
    parts = urlsplit(plain)
    _, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if colon and password:
        yield password
    for name, value in (*parse_qsl(parts.query), *parse_qsl(parts.path.replace(";", "&").lstrip("/&"))):
        if _SECRET.search(name):
            yield value


@frozen
class SourceSettings(SettingsGroup):
    """One database or engine."""

    url: Annotated[str, FieldCheck(source_url)] = field(
        metadata=about(
            "Its address, such as postgresql://me:${PGPASSWORD}@host/shop, sqlite:///data/shop.db or sc://host:15002 "
            "(Spark Connect). ${NAME} is an environment variable, ${keyring:NAME} an entry of the keyring."
        ),
    )
    writable: bool = field(
        default=False, metadata=about("Whether statements that change data may run there, each after a question.")
    )
    share: Literal["schema", "aggregates", "sample"] = field(
        default="schema",
        metadata=about("What a model sees of its tables before it queries them; see analysis.share."),
    )
    ask_cost: Amount = field(
        default=1_000_000,
        metadata=about("Estimated cost above which a query asks first (PostgreSQL's unit); 0 never asks."),
    )
    environment: tuple[str, ...] = field(
        default=(),
        metadata=about("Environment variables that its driver reads, such as GOOGLE_APPLICATION_CREDENTIALS."),
    )
    files: tuple[Path, ...] = field(
        default=(), metadata=about("Files and folders that its driver reads, such as a certificate.")
    )
