"""Simple commands as values: expanded by ``walker``, then resolved by ``judgement`` for rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.values import frozen
from ba_tui.permissions.paths import TouchedPath


@frozen
class KnownListing:
    """Files below ``roots`` whose names match one of ``names``; any name if empty.

    - ``regular``: no links
    - ``ended``: each name ends with a NUL, so that blanks don't split it
    - ``bare``: each output line begins with a name, which may look like an option
    - ``held``: reading them is harmless only in a sandbox, since the resulting words are uncertain
    """

    roots: tuple[str, ...]
    names: tuple[str, ...] = ()
    regular: bool = False
    ended: bool = False
    bare: bool = False
    held: bool = False


@frozen
class ShellWord:
    """One word after quote removal.

    - ``text``: None if unknown before the command runs (a variable, a substitution)
    - ``glob``: an unquoted ``*``, ``?``, ``[`` or brace may change or multiply it
    - ``among``: it is one of these words or files
    - ``split``: blanks and patterns in its value are interpreted again
    """

    text: str | None
    raw: str
    glob: bool = False
    among: KnownListing | tuple[ShellWord, ...] | None = None
    split: bool = False


@frozen
class ExpandedRedirect:
    """A file that is opened for a command, other than copies of descriptors and here-documents."""

    kind: Literal["read", "write"]
    target: ShellWord


InputSource: TypeAlias = Literal["", "told", "unseen"]
"""A command's standard input: nothing, text of the command itself, or unknown text."""


@frozen
class ExpandedCommand:
    """One simple command. ``argv`` begins with the program; it is empty for a bare assignment or redirection.

    ``wrappers``: programs around it, outermost first (``sudo``, ``timeout`` …). ``folder``: its working directory
    relative to that of the whole command ("" if the same, None if unknown before it runs). ``text``: the part of the
    command that contains it, for display.
    """

    argv: tuple[ShellWord, ...]
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    redirects: tuple[ExpandedRedirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    folder: str | None = ""
    text: str = ""
    incoming: InputSource = ""
    outgoing: tuple[str, ...] = ()
    """The words of the next command in the pipeline; empty if uncertain."""


@frozen
class ExpandedScript:
    """Every simple command that would run, at any depth. ``trouble``: why that may be incomplete, in one line.

    Functions, aliases and code in strings count as run where they are defined.
    """

    commands: tuple[ExpandedCommand, ...]
    trouble: str = ""
    grouped: bool = False
    """Whether it contains a group in parentheses, which runs in a subshell, outside of substitutions."""
    bound: frozenset[str] = frozenset()
    """Variables that are set other than by ``NAME=value``, or used in arithmetic."""
    taken: frozenset[str] = frozenset()
    """Variables whose unknown value is used in another variable, a list, a test or a here-document."""
    own: frozenset[str] = frozenset()
    """Variables that the command itself sets, so that their value does not come from the environment."""


@frozen
class Inner:
    """A command inside another one: its ``words``, its text as ``code``, or a shell that ``reads_input``.

    ``posix`` None: the same shell parses it; True: a shell that may support less than bash. ``folder`` None: the
    working directory is unknown; "": unchanged.
    """

    wrapper: str
    words: tuple[ShellWord, ...] = ()
    code: ShellWord | None = None
    reads_input: bool = False
    folder: str | None = ""
    posix: bool | None = True
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    redirects: tuple[ExpandedRedirect, ...] = ()


@frozen
class OpenedCommand:
    """The commands inside a command. ``itself``: it is judged too, as ``words`` if these exclude the inner commands."""

    inner: tuple[Inner, ...] = ()
    itself: bool = False
    words: tuple[ShellWord, ...] = ()


def several(word: ShellWord) -> bool:
    """Return whether ``word`` may expand to no word or to several."""
    if word.text is not None:
        return word.glob
    inside = word.raw[1:-1]
    return not (word.raw[:1] == word.raw[-1:] == '"' and len(word.raw) > 1) or '"' in inside or "@" in inside


def joined(words: Sequence[ShellWord]) -> ShellWord:
    """Return several words as one text, as ``eval`` and ``ssh`` read them."""
    raw = " ".join(word.raw for word in words)
    if any(word.text is None or word.glob for word in words):
        return ShellWord(None, raw)
    return ShellWord(" ".join(word.text or "" for word in words), raw)


GROUPED = "a group in parentheses runs in a subshell"
"""The reason for a loose command that excludes commands allowed by rules in the same call."""


@frozen
class Surplus:
    """An effect beyond reading. ``at``: index of its word; ``binding``: only a rule that names it covers it."""

    at: int
    why: str
    binding: bool


@frozen
class FolderRead:
    """Every file below ``folder`` is read; with ``names``, only matching ones. ``hidden``: also names that begin with a
    dot; ``follows``: links are followed."""

    folder: Path
    names: tuple[str, ...] = ()
    hidden: bool = True
    follows: bool = False


@frozen
class ResolvedCommand:
    """A simple command as rules see it: expanded, with the paths it touches and its effects beyond reading.

    - ``words``: None for words that are unknown before it runs
    - ``plain``: program and subcommand without options before them, then the rest
    - ``known``: the command is known
    - ``reads``, ``writes``: files it certainly opens so; ``named``: words that may name a file
    - ``takes``: input that may control it
    - ``stops``: why only a rule for its exact text covers it
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
    """The words that are unknown before it runs, as written."""
    takes: InputSource = ""
    redirected: bool = False
    """Whether a redirection opens one of its files."""
    loose: str = ""
    """Why it may run without asking only in a read-only sandbox; empty if it may anywhere."""
    unsure: bool = False
    """Whether its words may expand to options or other files: then only a read-only sandbox covers it, no rule does."""
    lists: bool = False
    """Whether its program shows names and sizes of files but no contents."""

    @property
    def harmless(self) -> bool:
        """Whether the command itself only reads; its paths and ``loose`` are judged separately."""
        return self.known and not self.surplus and not self.stops

    @property
    def plain_reader(self) -> bool:
        """Whether it may run without a sandbox: it only reads, and what it reads is known beforehand."""
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
