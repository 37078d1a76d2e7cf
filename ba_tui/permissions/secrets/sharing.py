"""Decides whether secrets may reach a model: the setting, the user's answers, prompts, and other input of requests."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.events import MAIN, Notice
from ba_tui.core.messages import Message
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_in
from ba_tui.core.turn import Branch
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.disguises import KnownSearch, search_for
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.secrets.masking import MARK, KnownSecrets
from ba_tui.permissions.secrets.scanner import LARGE, Secret, find
from ba_tui.resources import UserFolders

Secrecy: TypeAlias = Literal["redact", "ask", "allow"]
SEARCHES_AFTER = 0.3
"""Seconds from the first prompt to the workspace search, so that the request leaves first. The search usually finishes
before the model calls a command; an earlier command starts it."""
_CUT = "cut_secrets"
_FILL = regex(rf"\b{MARK}x*\b")


def cut_secrets(kinds: Sequence[str]) -> dict[str, Any]:
    """Return a result's note of secrets that would have been shown in part."""
    return {_CUT: list(kinds)} if kinds else {}


def kinds_cut(meta: Mapping[str, Any]) -> Sequence[str]:
    """Return the kinds that ``cut_secrets`` noted."""
    return meta.get(_CUT, ())


@dataclass(slots=True)
class SecretSharing:
    """The state of one conversation. Each secret is asked about once and remembered by its hash."""

    secrecy: Secrecy = "redact"
    search: KnownSearch = field(default_factory=lambda: KnownSearch(KnownSecrets()))
    _settled: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def know(self, keys: Iterable[str]) -> None:
        """Also search results for ``keys``, which no result has shown. Call it off the event loop."""
        self.search.known.add(keys, "key")
        self.search.prepare()

    def fills(self, text: str) -> tuple[str, ...]:
        """Return the placeholders in ``text`` that have the length of a known secret."""
        if MARK not in text:
            return ()
        sizes = {len(line.encode()) for value in self.search.known.values() for line in value.split("\n")}
        return tuple(dict.fromkeys(match[0] for match in _FILL.finditer(text) if len(match[0]) in sizes))

    async def looked(self, text: str) -> tuple[Secret, ...]:
        """Return the secrets in ``text``, by pattern and by value. A long text is searched off the event loop."""
        if len(text) > LARGE // 2 or not self.search.settled:
            return await asyncio.to_thread(self.search.secrets, text)
        return self.search.secrets(text)

    def withheld(self, text: str, secrets: Iterable[Secret]) -> tuple[Secret, ...]:
        """Return those of ``secrets`` that the user has not agreed to share."""
        return tuple(secret for secret in secrets if not self._settled.get(_mark(text, secret)))

    def open(self, text: str, secrets: Iterable[Secret]) -> bool:
        """Return whether the user has not been asked about one of the secrets."""
        return any(_mark(text, secret) not in self._settled for secret in secrets)

    def settle(self, text: str, secrets: Iterable[Secret], *, share: bool) -> None:
        self._settled.update((_mark(text, secret), share) for secret in secrets)

    def news(self, about: str, kinds: str) -> bool:
        """Return True the first time that these kinds were found there."""
        seen = (about, kinds) in self._told
        self._told.add((about, kinds))
        return not seen


async def secrets_by_pattern(text: str) -> tuple[Secret, ...]:
    """Return the secrets in ``text`` by pattern. A long text is searched off the event loop."""
    return await asyncio.to_thread(find, text) if len(text) > LARGE else find(text)


def kinds_of(secrets: Sequence[Secret], others: Sequence[str] = ()) -> str:
    """Return a phrase such as ``a GitHub token and 2 passwords``; ``others`` are kinds of further secrets."""
    counts: dict[str, int] = {}
    for kind in (*(secret.kind for secret in secrets), *others):
        counts[kind] = counts.get(kind, 0) + 1
    words = [_counted(kind, count) for kind, count in counts.items()]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


class PromptSecrets:
    """core.agent.Interceptor: warns the user of secrets or hidden characters in prompts, without holding them back.

    ``begin`` starts the workspace search once the first request is under way; it does not block.
    """

    def __init__(self, sharing: SecretSharing, begin: Callable[[], None] = lambda: None) -> None:
        self._sharing = sharing
        self._begin: Callable[[], None] | None = begin
        self._seen: set[str] = set()

    async def before(self, branch: Branch) -> None:
        if branch.name != MAIN:
            # The user did not write a sub-agent's prompt.
            return
        if self._begin:
            asyncio.get_running_loop().call_later(SEARCHES_AFTER, self._begin)
        self._begin = None
        for message in reversed(branch.transcript.messages):
            if message.role == "assistant":
                return
            if message.id in self._seen or message.hidden or message.origin not in {"user", "steer"}:
                continue
            self._seen.add(message.id)
            words = message.own_text
            if hidden := hidden_in(words):
                codes = ", ".join(f"U+{ord(letter):04X}" for letter in hidden[:4])
                text = f"Your message contains invisible characters ({codes}); the model reads them."
                branch.emit(
                    Notice(text, "warning", "They often come with copied text and may contain hidden instructions.")
                )
            if self._sharing.secrecy != "allow" and (secrets := await secrets_by_pattern(words)):
                text = f"Your message contains {kinds_of(secrets)}; it is sent to the model unchanged."
                branch.emit(Notice(text, "warning", "If you did not mean to share it, stop now and change the secret."))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Do nothing: answers are the model's own words."""


def _counted(kind: str, count: int) -> str:
    if count > 1:
        noun, _, rest = kind.partition(" in ")
        return f"{count} {noun}{'es' if noun.endswith('s') else 's'}{f' in {rest}' if rest else ''}"
    return f"{'an' if kind[0] in 'aeiouAEIO' or kind.startswith(('npm', 'xAI', 'NVIDIA')) else 'a'} {kind}"


def _mark(text: str, secret: Secret) -> bytes:
    """Return the hash of a secret's value, which its pieces and encodings share."""
    value = secret.value or text[secret.start : secret.end]
    return hashlib.sha256(value.encode("utf-8", "replace")).digest()


@lru_cache(maxsize=8)
def ingress_for(where: UserFolders, root: Path, secrecy: Secrecy = "redact") -> Ingress:
    """Return the rules for files and output that enter requests of a project; cached.

    No question can be asked while a request is built, so secrets are masked unless the setting shares them.
    """
    workspace = Workspace(root)

    def secret(path: Path, status: os.stat_result) -> bool:
        return secret_file(path, status, workspace)

    return Ingress(
        workspace.root, (where.config,), secret, str if secrecy == "allow" else search_for(workspace.root).masked
    )
