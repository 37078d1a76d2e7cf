"""Implements ``core.ports.context.Skills``: all skills with their state, and the user's changes to them, which take
effect with the next request."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import SkillLine, SkillState
from ba_tui.skills.activation import MAX_PARAMETER_CHARS, ActivationRequest, SkillStack
from ba_tui.skills.active import NOT_HERE, ActiveSkills, SkillChange
from ba_tui.skills.catalog import Skill
from ba_tui.skills.content import body_of, digest_of, files_of
from ba_tui.skills.validator import check


class SkillList:
    """The skills of one conversation, for faces."""

    def __init__(self, skills: ActiveSkills) -> None:
        self._skills = skills

    def lines(self) -> Sequence[SkillLine]:
        found = self._skills.catalog.look()
        ranked = sorted(found, key=lambda skill: (skill.shadowed, skill.id))
        return [self._line(skill) for skill in ranked]

    def body(self, id: str) -> str:
        return body_of(self._skills.found(id), self._skills.catalog.ingress)

    def check(self, id: str) -> tuple[Sequence[str], Sequence[str]]:
        skill = self._skills.catalog.get(id)
        if skill is None:
            raise UsageError(f"There is no skill {id!r}.", "See ba skills list.")
        report = check(skill.folder)
        return report.errors, report.warnings

    def activate(self, id: str, parameters: str = "") -> None:
        skill = self._skills.found(id)
        if skill.head.for_models:
            why = f"The skill {skill.id} is started by models only (user-invocable: false in its SKILL.md)."
            raise UsageError(why, "Ask for what it does.")
        words = parameters.strip()
        if len(words) > MAX_PARAMETER_CHARS:
            raise UsageError(
                f"The parameters of {skill.id} have {len(words):,} characters; at most {MAX_PARAMETER_CHARS:,} go.",
                "Put them into a file, and name the file.",
            )
        waiting = self._skills.waiting()
        if skill.id not in waiting:
            # Refuse now if possible; starting an active skill again replaces it.
            stack = SkillStack(self._skills.active())
            if skill.id not in stack:
                stack.check(skill.id, by="person")
        self._skills.queue(SkillChange(skill.id, request=ActivationRequest(skill.id, "person", words)))

    def attach(self, names: Sequence[str]) -> Sequence[str]:
        if not self._skills.choices.auto_load or not self._skills.choices.enabled:
            return ()
        wanted = dict.fromkeys(id for name in names for id in self.handlers(name))
        begun = [
            id for id in wanted if id not in SkillStack(self._skills.active()) and id not in self._skills.waiting()
        ]
        for id in begun:
            self._skills.queue(SkillChange(id, request=ActivationRequest(id, "file")))
        return begun

    def handlers(self, name: str) -> Sequence[str]:
        if not self._skills.choices.enabled:
            return ()
        plain, choices = name.lower(), self._skills.choices
        usable = [skill.id for skill in self._skills.catalog.usable()]
        return [id for id in usable if any(plain.endswith(f".{kind}") for kind in choices.of(id).file_types)]

    def end(self, id: str) -> None:
        if id not in SkillStack(self._skills.active()) and id not in self._skills.waiting():
            raise UsageError(f"The skill {id} is not active.", "See which are: /skills.")
        self._skills.queue(SkillChange(id, ends=True))

    def switch(self, id: str, *, on: bool) -> None:
        self._skills.switched[self._skills.found(id).id] = on

    def _line(self, skill: Skill) -> SkillLine:
        head = skill.head
        usable = not head.trouble
        modifier = self._skills.modifier(skill)
        unknown = ", ".join(modifier.unknown)
        tools = modifier.tools
        confirmed = usable and bool(tools) and self._skills.confirmed.has(skill.id, digest_of(skill), tools)
        return SkillLine(
            skill.id,
            self._state(skill),
            skill.source,
            self._skills.choices.of(skill.id).description or head.description,
            skill.tokens,
            head.trouble,
            (*skill.warnings, *([f"allowed-tools: {NOT_HERE}: {unknown}"] if unknown else [])),
            str(skill.folder),
            tuple(file.name for file in files_of(skill)) if usable else (),
            modifier.tools,
            modifier.model,
            confirmed,
            head.for_models,
        )

    def _state(self, skill: Skill) -> SkillState:
        if skill.head.trouble:
            return "broken"
        if skill.shadowed:
            return "shadowed"
        if skill.id in self._skills.waiting():
            return "waiting"
        if skill.id in SkillStack(self._skills.active()):
            return "active"
        return "on" if self._skills.choices.enabled and self._skills.offered(skill) else "off"
