"""How far a program may reach: the three profiles, as a value that goes with a call. Who confines it is elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.values import frozen

ProfileName: TypeAlias = Literal["reading", "working", "outside"]
HistoryAccess: TypeAlias = Literal["", "alone", "beside"]


@frozen
class Profile:
    """``reading``: writes nothing but a private ``/tmp`` and ``writable``, and has no network. ``working``: writes the
    workspace but for protected files. ``outside``: is not confined.

    ``git``: a single git call, which may write git folders (their settings and hooks aside) and tracked protected
    files. ``packages``: a package manager, which may write ``.venv`` and ``node_modules``. ``readable`` and
    ``writable``: files elsewhere that the person, or a rule, let this command reach. ``unhidden``: files with secrets
    that git stores, which it would take for changed if they were hidden from it. ``plain``: a reader that opens no file
    but those that its words name, so it runs also where secrets can't all be hidden. ``network``: a reader that has the
    network: the helper of a database that the person set up. ``history``: whether a reader sees what git stores of
    older versions: ``alone`` when nothing but git calls and filters run, ``beside`` when the other commands open no
    file but those that their words name, and these lie in no git folder. ``masked``: files that a rule keeps from a
    command which goes through folders, so that one line is in their place. ``private``: folders that a command lists
    and in whose place it sees private or nearly empty ones.
    """

    name: ProfileName
    git: bool = False
    packages: bool = False
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    unhidden: tuple[Path, ...] = ()
    plain: bool = False
    network: bool = False
    history: HistoryAccess = ""
    masked: tuple[Path, ...] = ()
    private: tuple[Path, ...] = ()


@frozen
class ProfileStep:
    """One of several commands that run one after the other, each in its profile. ``joined``: it runs only when the one
    before it succeeded."""

    text: str
    profile: Profile
    joined: bool = False


READING, WORKING, OUTSIDE = Profile("reading"), Profile("working"), Profile("outside")
