"""The skills that the file of an agent names: it has their instructions from the start, and nothing else.

A skill may bring tools that need no approval, or another model. Neither holds for an agent that was given it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.errors import UsageError
from ba_tui.core.work import ActiveSkill
from ba_tui.skills.activation import framed
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.content import digest_of, instructions


def skilled(spec: AgentSpec, skills: ActiveSkills) -> tuple[AgentSpec, Sequence[str]]:
    """``spec`` with the instructions of its skills below its prompt, and why some of them are not there. Reads files:
    call it off the loop."""
    parts, lost = [spec.prompt.strip()], list[str]()
    for name in spec.skills:
        try:
            parts.append(_told(name, skills))
        except UsageError as error:
            lost.append(f"{spec.name} works without the skill {name}: {error}")
    return replace(spec, prompt="\n\n".join(filter(None, parts))), lost


def _told(name: str, skills: ActiveSkills) -> str:
    """The instructions of a skill within marks. Raises UsageError when a sub-agent can't have it."""
    skill = skills.found(name)
    if skill.head.hidden:
        raise UsageError("It is started by the user only.")
    if not skills.offered(skill, for_subagent=True):
        raise UsageError("It is switched off for sub-agents.")
    if skills.modifier(skill).exclusive:
        raise UsageError("It allows only tools of its own while it is active.")
    text = instructions(skill, skills.catalog.ingress, skills.place(skill), "")
    return framed(ActiveSkill(skill.id, "file", digest_of(skill), by="file"), text)
