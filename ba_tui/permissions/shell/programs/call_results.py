"""What a call of a known program comes to, as values. ``call_reading`` finds it, ``judgement`` judges it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ba_tui.core.values import frozen
from ba_tui.permissions.shell.walk.values import Listing, Word


@frozen
class Beyond:
    """Something that is more than reading. ``at``: its place in argv; ``binding``: a rule must name it to cover it."""

    at: int
    why: str
    binding: bool = True


@dataclass(slots=True)
class Reading:
    """``path``: program and subcommand by their plain names; ``files`` it reads; ``beyond`` what is not just reading;
    ``roots``: folders below which it reads every file (with those names, hidden ones too or not, through links or not).
    ``folders``: those in which it happens, one seen from the other."""

    path: tuple[str, ...] = ()
    known: bool = False
    files: list[Word] = field(default_factory=list[Word])
    touched: list[Word] = field(default_factory=list[Word])
    """Words of commands that do more than read, which may name files."""
    beyond: list[Beyond] = field(default_factory=list[Beyond])
    roots: list[Word] = field(default_factory=list[Word])
    names: tuple[str, ...] = ()
    hidden: bool = True
    follows: bool = False
    lists: list[Listing] = field(default_factory=list[Listing])
    """Files that it reads out of these."""
    folders: list[Word] = field(default_factory=list[Word])
    effects: frozenset[str] = frozenset()
    loose: str = ""
    """Why only a sandbox makes it harmless."""
