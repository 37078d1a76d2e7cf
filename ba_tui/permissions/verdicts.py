"""What a policy is asked about a call, and what it says: it may run, it may not, or the person is asked; and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.effects import UNLIMITED, Ceiling
from ba_tui.core.events import MAIN
from ba_tui.core.profiles import WORKING, Profile, ProfileStep
from ba_tui.core.questions import Risk
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.rules.conditions import OnTimeout


@frozen
class JudgedCall:
    """A call that a policy judges.

    ``cwd`` is where a command would run; paths in arguments start from the root. ``agent`` makes the call, within its
    ``ceiling``. ``tried``: what the call tried to write when it ran as a reader.
    """

    tool: Tool
    args: Mapping[str, Any]
    cwd: Path
    agent: str = MAIN
    ceiling: Ceiling = UNLIMITED
    tried: str = ""


def judged_call(tool: Tool, args: Mapping[str, Any], cwd: Path, call: Call) -> JudgedCall:
    """Return what is judged when the agent of ``call`` uses ``tool``."""
    return JudgedCall(tool, args, cwd, call.branch.name, call.branch.ceiling)


@frozen
class Allow:
    """``by`` is the rule that decided, empty when the mode did."""

    by: str = ""
    profile: Profile = WORKING
    """How what it runs is confined; of no account to calls that run nothing."""
    steps: tuple[ProfileStep, ...] = ()
    """The commands that it consists of, where each one runs on its own; empty where all run together."""


@frozen
class Deny:
    """``reason`` is for the model and for the person alike."""

    reason: str
    by: str = ""
    malformed: bool = False
    """Nothing is forbidden: the arguments name nothing that there can be."""
    hint: str = ""


@frozen
class Ask:
    """``rule``: the narrowest rules worth remembering, one a line; None when nothing should be. ``session_rule``: those
    for the session where they are others. Unanswered for ``timeout`` seconds it is settled by ``on_timeout``; None
    waits."""

    reason: str
    rule: str | None
    risks: tuple[Risk, ...] = ()
    by: str = ""
    timeout: float | None = None
    on_timeout: OnTimeout = "deny"
    profile: Profile = WORKING
    """How it is confined once the person allows it."""
    session_rule: str | None = None


Judgement: TypeAlias = Allow | Deny | Ask


def as_reader(verdict: Judgement) -> Judgement:
    """Return ``verdict`` for an agent that may only read: what runs then is confined to reading."""
    if isinstance(verdict, Deny):
        return verdict
    if isinstance(verdict, Ask):
        return replace(verdict, profile=_reading(verdict.profile))
    steps = tuple(replace(step, profile=_reading(step.profile)) for step in verdict.steps)
    return replace(verdict, profile=_reading(verdict.profile), steps=steps)


def _reading(profile: Profile) -> Profile:
    return replace(profile, name="reading", git=False, packages=False, writable=())
