"""What is kept of a team that ended: who did what, messages, tokens, seconds, conflicts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ba_tui.core.teamwork.teams import conflict_facts
from ba_tui.core.text.wording import count, one_line
from ba_tui.features.teams.engine.orchestrator import Finished

SCHEMA = 1
MOST_TEXT = 2_000
SAID = {"completed": "reached its goal", "partial": "did a part of its goal", "failed": "failed"}


def archived(done: Finished, *, strategy: str) -> dict[str, Any]:
    """The team as JSON, for the session's results."""
    roles = {each.name: each.role for each in done.team.members}
    members: list[dict[str, Any]] = [
        {
            "name": name,
            "role": roles.get(name, ""),
            "tasks": [{"ok": each.ok, "seconds": round(each.seconds, 2), "error": each.error} for each in outcomes],
            "agents": [each.agent_id for each in outcomes if each.agent_id],
            "tokens": sum(each.tokens for each in outcomes),
            "seconds": round(sum(each.seconds for each in outcomes), 2),
        }
        for name, outcomes in done.by.items()
    ]
    return {
        "schema_version": SCHEMA,
        "team": done.team.id,
        "goal": done.team.goal,
        "pattern": done.team.pattern,
        "state": done.state,
        "seconds": round(done.seconds, 2),
        "members": members,
        "messages": dict(done.messages),
        "tokens": sum(each["tokens"] for each in members),
        "strategy": strategy,
        "conflicts": [conflict_facts(each) for each in done.conflicts],
        "missing": list(done.answer.missing),
    }


def summary(done: Finished) -> str:
    """The team in a line, as the person reads it at its end."""
    tokens = sum(each.tokens for outcomes in done.by.values() for each in outcomes)
    parts = [
        count(len(done.by), "member"),
        count(sum(done.messages.values()), "message"),
        count(len(done.conflicts), "conflict"),
        count(tokens, "token"),
    ]
    return f"The team {SAID.get(done.state, done.state)} in {done.seconds:.0f} s: {', '.join(parts)}."


def outcome_text(done: Finished) -> str:
    """What memory keeps: the goal, who worked on it how, and how it came out."""
    roles = ", ".join(dict.fromkeys(each.role for each in done.team.members if each.role != "lead"))
    text = (
        f"A team ({done.team.pattern}: {roles}) worked on: {one_line(done.team.goal, 300)}. It {SAID.get(done.state)}"
    )
    gaps = f"; missing: {_joined(done.answer.missing)}" if done.answer.missing else ""
    return one_line(f"{text} in {done.seconds:.0f} s{gaps}.", MOST_TEXT)


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(one_line(text, 200) for text in texts[:5])
