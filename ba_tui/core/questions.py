"""What is asked of the person and what they answer: approvals, choices and going on at a limit alike."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, TypeAlias

from ba_tui.core.results import Display
from ba_tui.core.values import frozen

Risk: TypeAlias = Literal[
    "writes",
    "network",
    "outside the workspace",
    "outside the sandbox",
    "destructive",
    "runs a command",
    "shares a secret",
    "writes to memory",
    "calls an MCP server",
]


@frozen
class Option:
    label: str
    description: str = ""


@frozen
class Question:
    """``permission``: may this call run; ``choice``: pick or write an answer; ``continue``: go on past a limit;
    ``plan``: may this plan be carried out ("once": in default mode, "session": with edits accepted).

    For a permission, ``tool``, ``args`` and ``preview`` are what would run, ``reason`` the rule that made us ask,
    ``rule`` the narrowest rules worth remembering, one a line (None when nothing should be remembered),
    ``session_rule`` those to be remembered for the session where they are others, ``warnings`` what a person can't see
    by looking (hidden characters, deceptive addresses), ``rewritten`` who changed the arguments before.
    ``fixed``: a yes means what ``reason`` says, and nothing in the arguments can be changed.
    Unanswered for ``timeout`` seconds, it is settled by ``on_timeout``; None waits.
    """

    kind: Literal["permission", "choice", "continue", "plan"]
    text: str
    call_id: str = ""
    tool: str = ""
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    preview: Display | None = None
    reason: str = ""
    risks: tuple[Risk, ...] = ()
    rule: str | None = None
    options: tuple[Option, ...] = ()
    multiple: bool = False
    warnings: tuple[str, ...] = ()
    rewritten: str = ""
    timeout: float | None = None
    on_timeout: Literal["deny", "allow", "escalate"] = "deny"
    fixed: bool = False
    session_rule: str | None = None


@frozen
class Reply:
    """``text`` carries the words of a denial or of an answer; ``rule`` what session/always remembers;
    ``edited`` the arguments that the person changed before allowing the call; ``by`` who gave it: nobody answered in
    time, and so ``nobody``, a ``hook`` answered for the person, or the ``mode`` that they chose meanwhile."""

    choice: Literal["once", "session", "always", "deny", "text"]
    text: str = ""
    rule: str | None = None
    edited: dict[str, Any] | None = None
    by: Literal["person", "nobody", "hook", "mode"] = "person"


def unanswered(question: Question) -> Reply:
    """What settles a question that nobody answered in time."""
    seconds = (question.timeout or 0) * (2 if question.on_timeout == "escalate" else 1)
    choice: Literal["once", "deny"] = "once" if question.on_timeout == "allow" else "deny"
    return Reply(choice, f"Nobody answered in {seconds:g} s.", by="nobody")
