"""A shell command as rules see it: its simple commands with the paths they touch and what is more than reading.

Values only; ``judgement`` makes them and says which of them may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ba_tui.core.values import frozen
from ba_tui.permissions.simple import Incoming

if TYPE_CHECKING:
    from pathlib import Path

    from ba_tui.permissions.rules import Seen


SHORT_LIST = frozenset({
    "cat", "head", "tail", "wc", "ls", "echo", "printf", "pwd", "cd", "true", "false", "test", "[", "grep", "sort",
    "uniq", "cut", "tr", "basename", "dirname", "date", "sleep", "seq", "nl", "tac", "rev", "comm", "paste", "fold",
    "column",
    "uname", "whoami", "id", "stat", "du", "df", "which", "type", "expr", "cmp", "diff", "md5sum", "sha256sum",
})  # fmt: skip
"""Readers that may run without a sandbox."""


@frozen
class Surplus:
    """What is more than reading. ``at``: its place among the words; ``binding``: a rule must name it to cover it."""

    at: int
    why: str
    binding: bool


@frozen
class Below:
    """Every file below ``folder`` is read, of those with ``names`` only the ones that fit; ``hidden``: also others that
    begin with a dot."""

    folder: Path
    names: tuple[str, ...] = ()
    hidden: bool = True


@frozen
class Part:
    """One simple command. ``words`` with None for what is known only when it runs; ``plain``: its program and
    subcommand without options before them, then the rest; ``known``: it is among the commands that are known.

    ``reads`` and ``writes`` are files it certainly opens so; ``named`` are words that may name a file it touches.
    ``takes``: what comes in that may tell it what to do. ``stops``: why no rule but the whole command's own covers it.
    """

    words: tuple[str | None, ...]
    plain: tuple[str | None, ...] = ()
    wrappers: tuple[str, ...] = ()
    text: str = ""
    known: bool = False
    surplus: tuple[Surplus, ...] = ()
    reads: tuple[Seen, ...] = ()
    writes: tuple[Seen, ...] = ()
    named: tuple[Seen, ...] = ()
    below: tuple[Below, ...] = ()
    stops: str = ""
    effects: frozenset[str] = frozenset()
    unread: str = ""
    """The words that are known only when it runs, as written."""
    takes: Incoming = ""
    redirected: bool = False
    """Whether a redirection opens one of its files, which no word says."""

    @property
    def harmless(self) -> bool:
        """Whether it only reads, as far as the command itself tells; its paths are judged apart."""
        return self.known and not self.surplus and not self.stops

    @property
    def short_listed(self) -> bool:
        """Whether it is one of the few readers that may run where nothing holds it: known words, and no file but those
        that its words name."""
        words = self.plain or self.words
        return (
            self.harmless
            and not (self.writes or self.below or self.wrappers or self.redirected)
            and None not in self.words
            and (not words or words[0] in SHORT_LIST)
        )

    @property
    def why(self) -> str:
        """Why it is not harmless, in a few words."""
        if self.stops:
            return self.stops
        return next((surplus.why for surplus in sorted(self.surplus, key=lambda each: not each.binding)), "")

    @property
    def outside(self) -> tuple[Seen, ...]:
        return tuple(seen for seen in (*self.reads, *self.writes, *self.named) if not seen.inside)
