"""Settings of data sources, analysis and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from annotated_types import Ge, Gt, Le

from ba_tui.core.ports.settings import ALL, KINDS
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.fields import Address, Amount, Count, FieldCheck, Setter, SettingsGroup, Whole, about, off_as_word

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
    """Yield the parts of ``url`` where a password or token belongs."""
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


def known_trap(value: str) -> str:
    """Return the name of a kind of traps. Raises ValueError."""
    if value not in KINDS and value != ALL:
        raise ValueError(f"expected a kind of traps, such as {', '.join(list(KINDS)[:3])}, or {ALL}")
    return value


TrapName = Annotated[str, FieldCheck(known_trap)]


@frozen
class AnalysisSettings(SettingsGroup):
    """Datasets and queries."""

    share: Literal["schema", "aggregates", "sample"] = field(
        default="sample",
        metadata=about(
            "What a model sees of a file before it queries it: schema (names and types), aggregates (also statistics) "
            "or sample (also some values).",
            Setter(stricter=("schema",)),
        ),
    )
    unmasked: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "Columns as TABLE.COLUMN whose values a model may see although they look personal; /unmask adds one."
        ),
    )
    verify: Annotated[Literal["off", "show", "ask", "fix"], FieldCheck(off_as_word, first=True)] = field(
        default="show",
        metadata=about(
            "What is done about the figures of an answer: off (nothing), show (where each comes from), ask (also "
            "whether the model should check unsourced ones) or fix (it does so once).",
            "project",
        ),
    )
    memory_gb: Annotated[Amount, Ge(0), Le(1_000)] = field(
        default=0, metadata=about("Memory for queries in GB; 0 takes a quarter of the machine's, at most 4.", "project")
    )
    threads: Annotated[Whole, Ge(0), Le(256)] = field(
        default=0, metadata=about("Threads of the data engine; 0 uses all processors.", "project")
    )
    disk_gb: Annotated[Amount, Gt(0), Le(10_000)] = field(
        default=20, metadata=about("Most intermediate data that one query may keep on disk, in GB.", "project")
    )
    max_rows: Annotated[Whole, Ge(1), Le(1_000_000_000)] = field(
        default=10_000_000, metadata=about("Most rows of one query result.", "project")
    )
    python_memory_gb: Annotated[Amount, Ge(0), Le(1_000)] = field(
        default=0,
        metadata=about("Memory for Python sessions in GB; 0 takes a quarter of the machine's, at most 4.", "project"),
    )
    python_seconds: Annotated[Amount, Gt(0), Le(600)] = field(
        default=120,
        metadata=about("Seconds after which Python code is interrupted, unless the call says how many.", "project"),
    )
    query_seconds: Annotated[Amount, Gt(0), Le(86_400)] = field(
        default=300, metadata=about("Seconds after which a query is stopped.", "project")
    )
    fiscal_year_start: Annotated[Whole, Ge(1), Le(12)] = field(
        default=1, metadata=about("Month in which a fiscal year begins, for calendars.", "project")
    )
    mute_traps: tuple[TrapName, ...] = field(
        default=(), metadata=about("Kinds of traps that are not reported, or all (see `ba guide traps`).", "project")
    )


def _redis_address(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("expected an address that begins with redis://, rediss:// or unix://")
    return value


def memory_name(value: str) -> str:
    """Return ``value``. Raises ValueError for a path with ``.``, ``..`` or an empty part; ``team/project`` is valid."""
    if value and any(part.strip() in {"", ".", ".."} for part in value.replace("\\", "/").split("/")):
        raise ValueError("expected a name without “.”, “..” or empty parts between slashes")
    return value


@frozen
class ExpirySettings(SettingsGroup):
    """Days after which unused entries are removed. 0 keeps them; pinned ones are always kept."""

    facts: Amount = field(default=0, metadata=about("Days to keep facts; 0 keeps them."))
    preferences: Amount = field(default=0, metadata=about("Days to keep preferences; 0 keeps them."))
    summaries: Amount = field(default=365, metadata=about("Days to keep summaries of sessions; 0 keeps them."))
    outcomes: Amount = field(default=365, metadata=about("Days to keep outcomes of plans; 0 keeps them."))
    turns: Amount = field(default=365, metadata=about("Days to keep parts of conversations; 0 keeps them."))


@frozen
class EmbeddingEndpoint(SettingsGroup):
    """A server with an OpenAI-compatible embeddings endpoint, when `memory.embedder` is endpoint."""

    url: Address | None = field(
        default=None, metadata=about("The server's address, such as http://127.0.0.1:11434/v1.")
    )
    model: str = field(default="", metadata=about("The embedding model to ask for."))
    api_key_env: str = field(default="", metadata=about("The environment variable that holds its API key."))


@frozen
class MemorySettings(SettingsGroup):
    """Memory across sessions. `memory: off` is short for `memory.enabled: false`."""

    enabled: bool = field(
        default=True, metadata=about("Whether anything is remembered or recalled.", Setter(stricter=(False,)))
    )
    private: bool = field(
        default=False,
        metadata=about(
            "Neither store nor recall in the sessions that begin now; the flag --private.", Setter(stricter=(True,))
        ),
    )
    proposals: bool = field(
        default=True,
        metadata=about(
            "Propose to remember facts that you state; nothing is stored without your yes.", Setter(stricter=(False,))
        ),
    )
    summaries: bool = field(
        default=True, metadata=about("Remember a summary of each session.", Setter(stricter=(False,)))
    )
    most_recalled: Annotated[Whole, Ge(0), Le(50)] = field(
        default=5, metadata=about("Most entries that go with a prompt; 0 sends none.", "project")
    )
    recalled_tokens: Annotated[Whole, Ge(50), Le(20_000)] = field(
        default=600, metadata=about("Most tokens of entries that go with a prompt.", "project")
    )
    embedder: Annotated[Literal["fuse", "e5", "endpoint", "off"], FieldCheck(off_as_word, first=True)] = field(
        default="fuse",
        metadata=about(
            "What finds entries by meaning: fuse (fast, 16 languages), e5 (better, slower; the extra `e5`), endpoint "
            "(a server of yours) or off (by words alone).",
            Setter(
                stricter=(
                    "off",
                    False,
                )
            ),
        ),
    )
    endpoint: EmbeddingEndpoint = field(
        default=EmbeddingEndpoint(), metadata=about("The server that makes embeddings, with the embedder endpoint.")
    )
    url: Address | None = field(
        default=None,
        metadata=about("A Chroma server that a team shares; its entries are copied to this machine and back."),
    )
    api_key_env: str = field(default="", metadata=about("The environment variable with the token for `memory.url`."))
    project: Annotated[str, FieldCheck(memory_name)] = field(
        default="",
        metadata=about(
            "The project's name on the shared server: the same for all of the team, no other project's.",
            Setter("asked", question="to share memory under the name {value}"),
        ),
    )
    redis: Annotated[str, FieldCheck(_redis_address)] | None = field(
        default=None,
        metadata=about("A Redis server for the working memory of a team's tasks, such as redis://127.0.0.1:6379/0."),
    )
    max_entries: Annotated[Count, Ge(100), Le(1_000_000)] = field(
        default=100_000,
        metadata=about("Most entries a project keeps; beyond it, those of little use go (importance, age, use)."),
    )
    expire_days: ExpirySettings = field(
        default=ExpirySettings(), metadata=about("Days after which entries expire, by kind.")
    )


def memory_switch(value: Any) -> Any:
    """Return the settings for the words ``off`` and ``on``."""
    return {"enabled": value} if isinstance(value, bool) else value
