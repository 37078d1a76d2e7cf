"""The skills of one conversation: out of folders and settings, tied to its permissions, tools and models.

What a skill is and what starting one brings stands in the skills room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import cast

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Lent
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.rule import Rule, read_rule
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.resources import Places, bundled, project_root, user_home
from ba_tui.skills.active import FOLDER, MENTION, ActiveSkills, SkillContext
from ba_tui.skills.catalog import SkillCatalog, skill_roots
from ba_tui.skills.config import read_choices
from ba_tui.skills.confirmed import Confirmed
from ba_tui.skills.listing import SkillList
from ba_tui.skills.prompt import SkillNotes, catalogue
from ba_tui.tools.builtin.skills import activate_skill_tool, end_skill_tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.guards.permission import CallJudge

log = logging.getLogger(__name__)
ALWAYS = frozenset({
    *("activate_skill", "end_skill", "run_skill_script", "read_artifact", "tool_search"),
    *("ask_user", "todo_write", "todo_read"),
})  # fmt: skip
"""Tools that no skill can take away."""
JOINING = ("end_skill", "run_skill_script")
"""Tools that a model is told of once a skill is active."""


@lru_cache(maxsize=8)
def catalog_for(where: Places, ingress: Ingress) -> SkillCatalog:
    """One for all conversations in a project: what was read of a file is read again only when it has changed."""
    trust, root = Trust(where), ingress.root
    roots = skill_roots(bundled("skills"), user_home(), where.config, root, lambda: trust.trusted(root))
    return SkillCatalog(roots, ingress)


class Skilling:
    """Reads folders when it is made. ``problems``: what is wrong with skills.yaml and the skills, for people."""

    def __init__(self, where: Places, ingress: Ingress, cwd: Path, session: str) -> None:
        root = project_root(cwd)
        catalog = catalog_for(where, ingress)
        own = [where.config / "skills.yaml"]
        if Trust(where).trusted(root):
            own.append(root / ".ba" / "skills.yaml")
        choices = read_choices(bundled("config") / "skills.yaml", own, ingress.raw)
        context = SkillContext(session, cwd, names_of_ours, self._asks, self._why_not)
        self.skills = ActiveSkills(catalog, choices, Confirmed(where.config / "confirmed_skills.yaml"), context)
        self.notes = SkillNotes(self.skills)
        self.list = SkillList(self.skills)
        found = catalog.look()
        unknown = choices.unknown([skill.id for skill in found])
        broken = [f"{skill.path}: {skill.head.trouble}" for skill in found if skill.head.trouble]
        problems = [*map(str, (*choices.problems, *unknown)), *(f"A skill can't be used: {each}" for each in broken)]
        self.problems = [sentence(each) for each in problems]
        self.missing: Callable[[str], str] = lambda model: ""
        self._policy: Policy | None = None
        self._rules: tuple[tuple[str, ...], tuple[Rule, ...]] = ((), ())

    def lent(self) -> tuple[Lent, ...]:
        """The folders of skills, to be read under names that say nothing of where they lie."""
        usable = self.skills.catalog.usable() if self.skills.choices.enabled else ()
        short = tuple(Lent(f"{FOLDER}/{skill.id}", skill.folder) for skill in usable)
        return (*short, *(Lent(f"{MENTION}{skill.id}", skill.folder) for skill in usable))

    def folder(self, id: str) -> Path:
        """Where a skill lies. Blocks. Raises UsageError when there is none that can be used."""
        return self.skills.found(id).folder

    def tools(self, definitions: Mapping[str, Definition]) -> tuple[Tool, ...]:
        if not self.skills.choices.enabled:
            return ()
        start = activate_skill_tool(definitions["activate_skill"], self.skills, self.notes)
        return (start, end_skill_tool(definitions["end_skill"], self.notes))

    def bind(self, policy: Policy) -> CallJudge:
        """Let what is active count for permissions; the judge to ask from then on."""
        self._policy = policy
        policy.grant(self._granted)
        return partial(self._judge, policy.judge)

    def joining(self) -> Sequence[str]:
        """Tools that active skills bring before the model."""
        return (*JOINING, *self.skills.wanted()) if self.skills.active() else ()

    @cached_property
    def catalogue(self) -> str:
        """For the system prompt; the same as long as the conversation is open. Blocks the first time."""
        return catalogue(self.skills)

    @cached_property
    def own_catalogue(self) -> str:
        """The part of it that ships with ba, and so shares the room of the first request."""
        return catalogue(self.skills, ("bundled",))

    def _asks(self) -> bool:
        return self._policy is not None and self._policy.level == "default"

    def _why_not(self, model: str) -> str:
        return self.missing(model)

    def _granted(self) -> Sequence[Rule]:
        texts = self.skills.granted() if self.skills.active() else ()
        if texts != self._rules[0]:
            self._rules = (texts, tuple(rule for text in texts if (rule := _rule(text))))
        return self._rules[1]

    def _judge(self, judge: CallJudge, request: JudgedCall) -> Judgement:
        limits = self.skills.limits()
        if limits and request.tool.name not in ALWAYS:
            allowed = {rule.partition("(")[0] for rule in limits.allowed_tools}
            if request.tool.name not in allowed:
                names = ", ".join(sorted(allowed))
                return Deny(f"While the skill {limits.id} is active only these tools may be used: {names}.")
        return judge(request)


def _rule(text: str) -> Rule | None:
    try:
        return read_rule(text, "allow", "an active skill")
    except UsageError as error:
        log.info("an active skill names %s: %s", text, error)
        return None


def names_of_ours() -> Mapping[str, str]:
    """Our names of tools by those of another assistant."""
    from ba_tui.hooks.config import ALIASES  # noqa: PLC0415 - most skills name no tools

    found: dict[str, str] = {}
    for ours, theirs in ALIASES.items():
        for name in theirs:
            found.setdefault(name, ours)
    return found


class Overridden:
    """core.provider.Provider: another model answers while a skill that wants one is active."""

    def __init__(self, own: Provider, wanted: Callable[[], str], make: Callable[[str], Provider]) -> None:
        self._own = own
        self._wanted = wanted
        self._make = make
        self._others: dict[str, Provider] = {}
        self._now = own

    @property
    def model(self) -> ModelInfo:
        return self._now.model

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        name = self._wanted()
        if name and name != self._own.model.id:
            return self._answer(name, request)
        self._now = self._own
        return self._own.stream(request)

    async def _answer(self, name: str, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self._now = await self._chosen(name)
        # Left as soon as the message is there: see core.agent.
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._now.stream(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def close(self) -> None:
        for provider in (self._own, *self._others.values()):
            await provider.close()

    async def _chosen(self, name: str) -> Provider:
        if name not in self._others:
            try:
                self._others[name] = await asyncio.to_thread(self._make, name)
            except BaError as error:
                log.warning("the model %s that a skill wants can't answer: %s", name, error)
                return self._own
        return self._others[name]
