"""A simple command as rules see it: expanded, with the paths that it touches and what it does beside reading.

Values only; ``judgement`` makes them and says which of them may run.
"""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.permissions.paths import TouchedPath
from ba_tui.permissions.shell.walk.values import InputSource

GROUPED = "a group in parentheses runs in a shell of its own"
"""Why a command is loose with which nothing that a rule allows runs in one."""


@frozen
class Surplus:
    """What is more than reading. ``at``: its place among the words; ``binding``: a rule must name it to cover it."""

    at: int
    why: str
    binding: bool


@frozen
class FolderRead:
    """Every file below ``folder`` is read, of those with ``names`` only the ones that fit; ``hidden``: also others that
    begin with a dot; ``follows``: also what links lead to."""

    folder: Path
    names: tuple[str, ...] = ()
    hidden: bool = True
    follows: bool = False


@frozen
class ResolvedCommand:
    """A simple command. ``words`` with None for what is known only when it runs; ``plain``: its program and
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
    reads: tuple[TouchedPath, ...] = ()
    writes: tuple[TouchedPath, ...] = ()
    named: tuple[TouchedPath, ...] = ()
    below: tuple[FolderRead, ...] = ()
    stops: str = ""
    effects: frozenset[str] = frozenset()
    unread: str = ""
    """The words that are known only when it runs, as written."""
    takes: InputSource = ""
    redirected: bool = False
    """Whether a redirection opens one of its files, which no word says."""
    loose: str = ""
    """Why it may run unasked only where a sandbox holds what reads; empty when it may anywhere."""
    unsure: bool = False
    """Whether its words may come to options or other files, so that nothing but a sandbox that holds it to reading
    covers it: no rule does."""
    lists: bool = False
    """Whether its program shows names and figures of files, and nothing that is in them."""

    @property
    def harmless(self) -> bool:
        """Whether it only reads, as far as the command itself tells; its paths, and ``loose``, are judged apart."""
        return self.known and not self.surplus and not self.stops

    @property
    def plain_reader(self) -> bool:
        """Whether it may run where nothing holds it: it only reads, and what it reads is known beforehand."""
        return self.harmless and not (self.loose or self.writes)

    @property
    def why(self) -> str:
        """Why it is not harmless, in a few words."""
        if self.stops:
            return self.stops
        return next((surplus.why for surplus in sorted(self.surplus, key=lambda each: not each.binding)), "")

    @property
    def outside(self) -> tuple[TouchedPath, ...]:
        return tuple(seen for seen in (*self.reads, *self.writes, *self.named) if not seen.inside)
