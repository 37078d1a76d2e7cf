"""What a call of a known program comes to, as values. ``call_reading`` finds it, ``judgement`` judges it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ba_tui.core.values import frozen
from ba_tui.permissions.shell.walk.values import KnownListing, ShellWord


@frozen
class Beyond:
    """Something that is more than reading. ``at``: its place in argv; ``binding``: a rule must name it to cover it."""

    at: int
    why: str
    binding: bool = True


@dataclass(slots=True)
class CallReading:
    """``path``: program and subcommand by their plain names; ``files`` it reads; ``beyond`` what is not just reading;
    ``roots``: folders below which it reads every file (with those names, hidden ones too or not, through links or not).
    ``folders``: those in which it happens, one seen from the other."""

    path: tuple[str, ...] = ()
    known: bool = False
    files: list[ShellWord] = field(default_factory=list[ShellWord])
    touched: list[ShellWord] = field(default_factory=list[ShellWord])
    """Words of commands that do more than read, which may name files."""
    beyond: list[Beyond] = field(default_factory=list[Beyond])
    roots: list[ShellWord] = field(default_factory=list[ShellWord])
    names: tuple[str, ...] = ()
    hidden: bool = True
    follows: bool = False
    whole: bool = False
    """Whether it may read any file of the workspace."""
    lists: list[KnownListing] = field(default_factory=list[KnownListing])
    """Files that it reads out of these."""
    folders: list[ShellWord] = field(default_factory=list[ShellWord])
    effects: frozenset[str] = frozenset()
    loose: str = ""
    """Why only a sandbox makes it harmless."""
