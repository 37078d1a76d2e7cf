"""What a question about a call says: how risky it is, and which rule would cover it and its like.

Whether there is a question at all is decided in ``policy``.
"""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.questions import Risk
from ba_tui.core.text.rule_words import EDITS, SANDBOXED, joined_rules
from ba_tui.core.tool import Effect
from ba_tui.permissions.egress.domains import domain_of
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.rules.conditions import terms_text
from ba_tui.permissions.rules.rule import CODE_TOOLS, SHELL_TOOLS, Rule, Subject, literal
from ba_tui.permissions.shell.command_text import (
    LONGEST_RULE,
    literals,
    looks_outside,
    rememberable,
    risks_of,
    risks_of_code,
)
from ba_tui.permissions.subjects import judging

_EDITORS = frozenset(rule.partition("(")[0] for rule in EDITS)
_SEARCHES = frozenset({"web_search"})
MCP = "mcp__"
"""How the names of tools of MCP servers begin."""


def risks(subject: Subject, workspace: Workspace, cwd: Path) -> tuple[Risk, ...]:
    """What a person should know before allowing a call; ``cwd`` is where a command would run."""
    if subject.tool.startswith(MCP):
        return ("calls an MCP server", *(("outside the workspace",) if subject.outside else ()))
    if subject.command is not None:
        code = subject.tool in CODE_TOOLS
        if subject.commands and not subject.trouble:
            return judging().risks(subject)
        text = literals(subject.command) if code else subject.command
        away = subject.outside or looks_outside(text, workspace, cwd)
        return risks_of_code(subject.command, away) if code else risks_of(subject.command, away)
    if subject.asks:
        return ("writes to memory",)
    by_effect: dict[Effect, tuple[Risk, ...]] = {
        Effect.WRITE: ("writes",),
        Effect.NETWORK: ("network",),
        Effect.EXECUTE: ("runs a command",),
    }
    outside: tuple[Risk, ...] = ("outside the workspace",) if subject.outside else ()
    return (*by_effect.get(subject.effect, ()), *outside)


GUARDING = "for files that run something or instruct models"
"""What the rules about @guarded are for: the name alone tells a user nothing."""


def named(rule: Rule) -> str:
    """A rule with its place, for people."""
    place = rule.source or "given"
    return f"{rule.text} ({f'{place}: {GUARDING}' if rule.pattern == '@guarded' else place})"


def secret_named(rule: Rule, subject: Subject, workspace: Workspace) -> str:
    """Return which file a rule about secrets means, as a sentence for people; empty for other rules."""
    if rule.pattern != "@secret":
        return ""
    files = (seen for each in subject.files() for seen in each.paths)
    secret = next(seen for seen in (*subject.paths, *subject.named, *files) if seen.secret)
    return f" {workspace.shown(secret.path)} holds secrets, so tools neither read nor write it."


def key_of(rule: Rule) -> str:
    """What tells a rule's hits from those of others."""
    return f"{rule.verdict} {rule.text}{terms_text(rule.terms)}"


def for_session(subject: Subject) -> str | None:
    """Return the rules that cover calls like this one until the session ends, where they reach further than
    ``suggested`` does; None where they should not."""
    if subject.stays:
        return f"{subject.tool}({SANDBOXED})"
    if subject.tool in _EDITORS and subject.paths:
        plain = all(seen.relative is not None and not seen.guarded for seen in subject.paths)
        return joined_rules(EDITS) if plain else None
    return subject.tool if subject.tool in _SEARCHES or subject.tool.startswith(MCP) else None


def suggested(subject: Subject) -> str | None:
    """Return the narrowest rule that covers this call and its like; None when nothing should be remembered."""
    if subject.tool in SHELL_TOOLS:
        return subject.offer
    if subject.asks:
        return None
    if subject.tool.startswith(MCP) and not subject.paths:
        # What the arguments of other people's tools mean is not known, but for addresses.
        host = domain_of(subject.target) if "://" in subject.target else ""
        return f"{subject.tool}({host})" if host else subject.tool
    if subject.command is not None:
        return f"{subject.tool}({subject.command})" if rememberable(subject.command) else None
    if subject.kinds:
        # Reads need no rule, and what can't be told or reaches further should not get one.
        kinds = set(subject.kinds - {"read"})
        return f"{subject.tool}({kinds.pop()})" if kinds in ({"write"}, {"ddl"}) and not subject.outside else None
    if len(subject.paths) > 1 or subject.tool in _SEARCHES:
        return None
    if subject.paths:
        seen = subject.paths[0]
        about = literal(seen.relative if seen.relative is not None else seen.path.as_posix())
    else:
        about = domain_of(subject.target) or literal(subject.target)
    if not about:
        return subject.tool if subject.effect is not Effect.NETWORK else None
    text = f"{subject.tool}({about})"
    return text if len(about) <= LONGEST_RULE and text.isprintable() and about == about.strip() else None
