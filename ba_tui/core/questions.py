"""Questions to the user and their replies: approvals, choices, and continuing at a limit."""

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
    """``permission``: may this call run; ``choice``: pick or write an answer; ``continue``: continue past a limit;
    ``plan``: may this plan run ("once": in default mode, "session": with edits accepted).

    For a permission, ``tool``, ``args`` and ``preview`` show what would run, ``reason`` is the rule that requires a
    question, ``rule`` the narrowest rules to remember, one a line (None to remember nothing), ``session_rule`` those
    for the session if different, ``warnings`` dangers that cannot be seen (hidden characters, deceptive addresses),
    ``rewritten`` who changed the arguments. ``fixed``: a yes covers exactly ``reason``, and the arguments cannot be
    edited.

    After ``timeout`` seconds ``on_timeout`` settles it; None waits without limit.
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
    """An answer. ``text`` contains the words of a denial or answer; ``rule`` what session/always remembers; ``edited``
    the arguments as edited by the user. ``by`` is who answered: the user, a ``hook``, the ``mode`` that the user chose
    meanwhile, or ``nobody`` at a timeout."""

    choice: Literal["once", "session", "always", "deny", "text"]
    text: str = ""
    rule: str | None = None
    edited: dict[str, Any] | None = None
    by: Literal["person", "nobody", "hook", "mode"] = "person"


def unanswered(question: Question) -> Reply:
    """Return the reply to a question that was not answered in time."""
    seconds = (question.timeout or 0) * (2 if question.on_timeout == "escalate" else 1)
    choice: Literal["once", "deny"] = "once" if question.on_timeout == "allow" else "deny"
    return Reply(choice, f"Nobody answered in {seconds:g} s.", by="nobody")
