"""Whether secrets may reach a model: what the settings say, what the person answered, and a word about prompts.

How secrets are found is in ``secrets``; results of tools pass the guard of that name.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ba_tui.core.events import MAIN, Notice
from ba_tui.core.messages import Message
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_in
from ba_tui.core.turn import Branch
from ba_tui.permissions.secrets.disguises import KnownSearch
from ba_tui.permissions.secrets.known import KnownSecrets
from ba_tui.permissions.secrets.masking import MARK
from ba_tui.permissions.secrets.scanner import LARGE, Secret, find

Secrecy: TypeAlias = Literal["redact", "ask", "allow"]
SEARCHES_AFTER = 0.3
"""Seconds from the first prompt to the search of the workspace: the request goes out first, and the search is done
before most models call a command. One that comes sooner starts it."""
_CUT = "cut_secrets"
_FILL = regex(rf"\b{MARK}x*\b")


def cut_secrets(kinds: Sequence[str]) -> dict[str, Any]:
    """What a result notes of secrets of which it would have shown a part."""
    return {_CUT: list(kinds)} if kinds else {}


def kinds_cut(meta: Mapping[str, Any]) -> Sequence[str]:
    """The kinds that ``cut_secrets`` noted."""
    return meta.get(_CUT, ())


@dataclass(slots=True)
class Sharing:
    """One conversation's. What the person was asked about once is not asked about again; it is known by its hash."""

    secrecy: Secrecy = "redact"
    search: KnownSearch = field(default_factory=lambda: KnownSearch(KnownSecrets()))
    _settled: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def know(self, keys: Iterable[str]) -> None:
        """Search results for ``keys`` too, which no result showed. Call it off the loop."""
        self.search.known.add(keys, "key")
        self.search.prepare()

    def fills(self, text: str) -> tuple[str, ...]:
        """Return the placeholders of masked copies in ``text`` that have the length of a known secret."""
        if MARK not in text:
            return ()
        sizes = {len(line.encode()) for value in self.search.known.values() for line in value.split("\n")}
        return tuple(dict.fromkeys(match[0] for match in _FILL.finditer(text) if len(match[0]) in sizes))

    async def looked(self, text: str) -> tuple[Secret, ...]:
        """The secrets in ``text``, by their looks and by value; a long one is searched off the loop."""
        if len(text) > LARGE // 2 or not self.search.settled:
            return await asyncio.to_thread(self.search.secrets, text)
        return self.search.secrets(text)

    def withheld(self, text: str, secrets: Iterable[Secret]) -> tuple[Secret, ...]:
        """Those of ``secrets`` that were not given away by the person's word."""
        return tuple(secret for secret in secrets if not self._settled.get(_mark(text, secret)))

    def open(self, text: str, secrets: Iterable[Secret]) -> bool:
        """Whether the person has not been asked about one of them."""
        return any(_mark(text, secret) not in self._settled for secret in secrets)

    def settle(self, text: str, secrets: Iterable[Secret], *, share: bool) -> None:
        self._settled.update((_mark(text, secret), share) for secret in secrets)

    def news(self, about: str, kinds: str) -> bool:
        """True the first time that these kinds were found there."""
        seen = (about, kinds) in self._told
        self._told.add((about, kinds))
        return not seen


async def looked(text: str) -> tuple[Secret, ...]:
    """The secrets in ``text``; a long one is gone through off the loop."""
    return await asyncio.to_thread(find, text) if len(text) > LARGE else find(text)


def kinds_of(secrets: Sequence[Secret], others: Sequence[str] = ()) -> str:
    """``a GitHub token and 2 passwords``; ``others`` are kinds of further ones."""
    counts: dict[str, int] = {}
    for kind in (*(secret.kind for secret in secrets), *others):
        counts[kind] = counts.get(kind, 0) + 1
    words = [_counted(kind, count) for kind, count in counts.items()]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


class PromptSecrets:
    """core.agent.Interceptor: tells the user of a secret or of hidden characters in their own words. It never holds
    them back. ``begin`` starts the search of the workspace once the first request is under way; it does not block."""

    def __init__(self, sharing: Sharing, begin: Callable[[], None] = lambda: None) -> None:
        self._sharing = sharing
        self._begin: Callable[[], None] | None = begin
        self._seen: set[str] = set()

    async def before(self, branch: Branch) -> None:
        if branch.name != MAIN:
            # What a sub-agent is asked is not what the person wrote.
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
                text = f"Your message holds invisible characters ({codes}); the model reads them."
                branch.emit(
                    Notice(text, "warning", "They often come with copied text and may hold hidden instructions.")
                )
            if self._sharing.secrecy != "allow" and (secrets := await looked(words)):
                text = f"Your message holds {kinds_of(secrets)}; it is sent to the model unchanged."
                branch.emit(Notice(text, "warning", "If you did not mean to share it, stop now and change the secret."))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Answers are the model's own words."""


def _counted(kind: str, count: int) -> str:
    if count > 1:
        noun, _, rest = kind.partition(" in ")
        return f"{count} {noun}{'es' if noun.endswith('s') else 's'}{f' in {rest}' if rest else ''}"
    return f"{'an' if kind[0] in 'aeiouAEIO' or kind.startswith(('npm', 'xAI', 'NVIDIA')) else 'a'} {kind}"


def _mark(text: str, secret: Secret) -> bytes:
    """What an answer is kept for: the value, which pieces and encodings of it share."""
    value = secret.value or text[secret.start : secret.end]
    return hashlib.sha256(value.encode("utf-8", "replace")).digest()
