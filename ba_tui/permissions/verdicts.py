"""What a policy says of a call: it may run, it may not, or the person is asked; and in which profile it then runs."""

from __future__ import annotations

from typing import TypeAlias

from ba_tui.core.profiles import WORKING, Profile, ProfileStep
from ba_tui.core.questions import Risk
from ba_tui.core.values import frozen
from ba_tui.permissions.rules.conditions import OnTimeout


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
    """``rule``: the narrowest rule worth remembering; None when nothing should be. Unanswered for ``timeout`` seconds
    it is settled by ``on_timeout``; None waits."""

    reason: str
    rule: str | None
    risks: tuple[Risk, ...] = ()
    by: str = ""
    timeout: float | None = None
    on_timeout: OnTimeout = "deny"
    profile: Profile = WORKING
    """How it is confined once the person allows it."""


Judgement: TypeAlias = Allow | Deny | Ask
