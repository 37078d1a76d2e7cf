"""Effects of calls, ceilings of agents, and sandbox profiles of programs. Others enforce them."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.values import frozen


class Effect(StrEnum):
    """The worst that a tool can do; decides about permission and parallel runs."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"


@frozen
class AgentCeiling:
    """The most that an agent may do, whatever rules, modes and answers allow. ``effects``: allowed effects of its
    calls. ``tools``: names of the tools that it may call; None means all. ``without``: names of tools that it may never
    call. ``outside``: whether its commands may run outside the sandbox."""

    effects: frozenset[Effect] = frozenset(Effect)
    tools: frozenset[str] | None = None
    outside: bool = True
    without: frozenset[str] = frozenset()

    def within(self, other: AgentCeiling) -> AgentCeiling:
        """Return the ceiling that allows only what both allow."""
        mine, theirs = self.tools, other.tools
        tools = theirs if mine is None else mine if theirs is None else mine & theirs
        outside, without = self.outside and other.outside, self.without | other.without
        return AgentCeiling(self.effects & other.effects, tools, outside, without)

    def may_call(self, tool: str) -> bool:
        """Return whether the ceiling allows the tool of that name."""
        return tool not in self.without and (self.tools is None or tool in self.tools)

    def of_any_tool(self) -> AgentCeiling:
        """Return the ceiling for side effects of an allowed tool, such as connecting to a host."""
        return replace(self, tools=None, without=frozenset())


UNLIMITED = AgentCeiling()
READ_ONLY = AgentCeiling(frozenset({Effect.READ}), outside=False)


ProfileName: TypeAlias = Literal["reading", "working", "outside"]
HistoryAccess: TypeAlias = Literal["", "alone", "beside"]


@frozen
class Profile:
    """How a program is confined. ``reading``: writes only a private ``/tmp`` and ``writable``, has no network.
    ``working``: also writes the workspace except protected files. ``outside``: not confined.

    ``git``: a single git call, which may write git folders (except their settings and hooks) and tracked protected
    files. ``packages``: a package manager, which may write ``.venv`` and ``node_modules``. ``readable`` and
    ``writable``: extra paths that the user or a rule allows for this command. ``unhidden``: tracked files with secrets,
    which git would report as changed if they were hidden. ``plain``: a reader that opens only files named in its
    arguments, so it may run even where secrets cannot all be hidden. ``network``: a reader with network: the helper of
    a database that the user set up.

    ``history``: whether a reader sees older versions in git: ``alone`` if only git calls and filters run, ``beside`` if
    the other commands open only files named in their arguments, outside git folders. ``masked``: files that a rule
    hides from a command that walks folders; it sees a placeholder line. ``private``: folders that a command lists,
    replaced by private or nearly empty ones.
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
    """One of several commands that run in sequence, each in its profile. ``joined``: it runs only if the previous one
    succeeded."""

    text: str
    profile: Profile
    joined: bool = False


READING, WORKING, OUTSIDE = Profile("reading"), Profile("working"), Profile("outside")
