"""What a shell command really runs, as values: simple commands, their words, their redirections.

How they are found stands in ``expansion``; what is thought of them in the files that judge.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ba_tui.core.values import frozen


@frozen
class KnownListing:
    """Files below ``roots`` whose own name fits one of ``names``, any without. ``regular``: no links; ``ended``: each
    name ends with a NUL, so that blanks in it part nothing; ``bare``: they begin with a name,
    which may read as an option; ``held``: only a sandbox makes it harmless to read them, since it is not certain which
    words the names come to."""

    roots: tuple[str, ...]
    names: tuple[str, ...] = ()
    regular: bool = False
    ended: bool = False
    bare: bool = False
    held: bool = False


@frozen
class ShellWord:
    """One word after the shell has taken its quotes away. ``text`` None: known only when it runs (a variable, a
    substitution). ``glob``: an unquoted ``*``, ``?``, ``[`` or brace may make it other or several words; ``among``: it
    is one of these words, or some of these files; ``split``: blanks and patterns in what it comes to count again."""

    text: str | None
    raw: str
    glob: bool = False
    among: KnownListing | tuple[ShellWord, ...] | None = None
    split: bool = False


@frozen
class Redirect:
    """A file that is opened for a command. Copies of descriptors and here-documents are none."""

    kind: Literal["read", "write"]
    target: ShellWord


InputSource: TypeAlias = Literal["", "told", "unseen"]
"""What a command finds on its standard input: nothing, what stands in the command itself, or what nobody has seen."""


@frozen
class ExpandedCommand:
    """One simple command. ``argv`` begins with the program; empty for a bare assignment or redirection.

    ``wrappers``: what it runs under, outermost first (``sudo``, ``timeout`` …); ``folder``: where it runs, as the
    ``cd`` before it says, from where the whole command runs ("" there; None when that is known only when it runs);
    ``text``: the part of the command it was found in, for people.
    """

    argv: tuple[ShellWord, ...]
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    folder: str | None = ""
    text: str = ""
    incoming: InputSource = ""
    outgoing: tuple[str, ...] = ()
    """The words of the command of a pipeline that reads what it prints; empty where that is not certain."""


@frozen
class ExpandedScript:
    """Every simple command that would run, at any depth. ``trouble``: why that may not be all, one line; empty when
    all is known. Functions, aliases and code in strings count as run where they are defined."""

    commands: tuple[ExpandedCommand, ...]
    trouble: str = ""
    grouped: bool = False
    """Whether a group in parentheses, which runs in a shell of its own, stands in it outside of substitutions."""
    bound: frozenset[str] = frozenset()
    """Variables that are set in another way than ``NAME=value``, or computed with."""
    taken: frozenset[str] = frozenset()
    """Variables whose value, which is not known, goes into another one, a list, a test or a here-document."""
    own: frozenset[str] = frozenset()
    """Variables that the command itself sets, so that their value is none of the environment."""
