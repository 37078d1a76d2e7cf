"""While a skill wants nothing but its own tools used, other calls are denied before any rule is asked."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.work import ActiveSkill
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.tools.guards.permission import CallJudge

ALWAYS = frozenset({
    *("activate_skill", "end_skill", "run_skill_script", "read_artifact", "tool_search"),
    *("ask_user", "todo_write", "todo_read"),
})  # fmt: skip
"""Tools that no skill can take away."""


def within_skill(judge: CallJudge, limits: Callable[[], ActiveSkill | None]) -> CallJudge:
    """``judge`` for the tools that the skill of ``limits`` leaves; None there limits nothing."""

    def judged(request: JudgedCall) -> Judgement:
        skill, tool = limits(), request.tool
        if skill and tool.name not in ALWAYS:
            allowed = {rule.partition("(")[0] for rule in skill.allowed_tools}
            if tool.name not in allowed:
                names = ", ".join(sorted(allowed))
                return Deny(f"While the skill {skill.id} is active only these tools may be used: {names or 'none'}.")
        return judge(request)

    return judged
