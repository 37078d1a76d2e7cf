"""What is remembered across sessions, for how long, and what searches it."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Address, Amount, Count, FieldCheck, Setter, Whole, about, off_as_word
from ba_tui.settings.sections.group import SettingsGroup


def _redis_address(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("expected an address that begins with redis://, rediss:// or unix://")
    return value


def memory_name(value: str) -> str:
    """Return ``value``. Raises ValueError when it is a path with ``.``, ``..`` or an empty part, which no memory is
    named; ``team/project`` is a name."""
    if value and any(part.strip() in {"", ".", ".."} for part in value.replace("\\", "/").split("/")):
        raise ValueError("expected a name without “.”, “..” or empty parts between slashes")
    return value


@frozen
class ExpirySettings(SettingsGroup):
    """Days after which entries that nobody used are removed. 0 keeps them; pinned ones are always kept."""

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
    """``off`` and ``on`` as the settings that they stand for."""
    return {"enabled": value} if isinstance(value, bool) else value
