"""The skills of one conversation: which can be started, and the effects of active ones. Also remembers recently used
skills, and those whose tools the user confirmed.

Changes reach the conversation through the tools and the interceptor in ``prompt``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ActiveSkill
from ba_tui.core.text.wording import sentence, similar
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.resources import exclusive, read_regular, save_whole
from ba_tui.settings.document import load_mapping, read_document
from ba_tui.settings.tool_names import rules_of
from ba_tui.skills.activation import (
    MAX_PARAMETER_CHARS,
    ActivationNote,
    ActivationRequest,
    Modifier,
    SkillActivation,
    SkillRefused,
    SkillStack,
    framed,
)
from ba_tui.skills.catalog import Skill, SkillCatalog, SkillChoices
from ba_tui.skills.content import MENTION, digest_of, files_of, folder_of, further, instructions, placed

HEADER = """\
# Skills and /commands whose tools you allowed, each with the hash of its content at that time.
# Remove a line to be asked again.
"""
MOST_CONFIRMED = 8
"""Remembered contents of one skill id: a project and the user may have different ones."""


class ConfirmedSkills:
    """The skills whose tools need no question, by the hash of their content, in a file of the user's config folder.
    If the file can't be written, confirmations last until the program ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._now: dict[tuple[str, str], frozenset[str]] = {}
        self._read: tuple[object, Mapping[tuple[str, str], frozenset[str]]] = (None, {})

    def has(self, id: str, digest: str, tools: Iterable[str]) -> bool:
        """Return whether the user allowed all of ``tools`` for this content of the skill."""
        known = [kept[id, digest] for kept in (self._now, self._kept()) if (id, digest) in kept]
        return bool(known) and frozenset(tools) <= frozenset().union(*known)

    def add(self, id: str, digest: str, tools: Sequence[str]) -> None:
        """Add a confirmation, which takes effect even if it can't be saved. Raises StorageError."""
        import yaml  # noqa: PLC0415 - not before the first paint

        self._now[id, digest] = self._now.get((id, digest), frozenset()) | frozenset(tools)
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            entries: Any = kept.get(id)
            before = cast("list[Any]", entries) if isinstance(entries, list) else []
            others = [entry for entry in before if _digest(entry) != digest]
            # The same content in another folder may name other paths, so keep both.
            earlier = [rule for entry in before if _digest(entry) == digest for rule in _rules(entry)]
            kept[id] = [*others, {"hash": digest, "tools": list(dict.fromkeys([*earlier, *tools]))}][-MOST_CONFIRMED:]
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=True), mode=0o600)

    def _kept(self) -> Mapping[tuple[str, str], frozenset[str]]:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return {}
        with self._lock:
            if self._read[0] != stamp:
                document = read_document(self.path)
                data = document.data if document and not document.problems else {}
                self._read = (stamp, _confirmed(data))
            return self._read[1]


def _confirmed(data: dict[str, Any]) -> dict[tuple[str, str], frozenset[str]]:
    """Return the allowed rules by skill id and hash of the content."""
    lists = {id: cast("list[Any]", entries) for id, entries in data.items() if isinstance(entries, list)}
    found = ((id, _digest(entry), _rules(entry)) for id, entries in lists.items() for entry in entries)
    return {(id, digest): frozenset(rules) for id, digest, rules in found if digest}


def _rules(entry: Any) -> list[str]:
    rules: Any = cast("dict[str, Any]", entry).get("tools") if isinstance(entry, dict) else None
    return [rule for rule in cast("list[Any]", rules) if isinstance(rule, str)] if isinstance(rules, list) else []


def _digest(entry: Any) -> str:
    digest: Any = cast("dict[str, Any]", entry).get("hash") if isinstance(entry, dict) else None
    return digest if isinstance(digest, str) else ""


KEPT = 50
LARGEST = 100_000


class RecentSkills:
    """The recently used skills, whose descriptions a long catalogue keeps whole. Stored in a file; without one
    nothing is remembered."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def ids(self) -> Sequence[str]:
        """Return the ids, the newest first. Blocks."""
        try:
            data: Any = json.loads(read_regular(self._path, LARGEST)) if self._path else []
        except (OSError, ValueError):
            return ()
        return tuple(id for id in cast("list[Any]", data) if isinstance(id, str)) if isinstance(data, list) else ()

    def used(self, id: str) -> None:
        """Note a use. Blocks. Errors are only logged."""
        if self._path is None:
            return
        try:
            with exclusive(self._path.parent):
                kept = [id, *(each for each in self.ids() if each != id)][:KEPT]
                save_whole(self._path, json.dumps(kept))
        except (OSError, StorageError) as error:
            log.warning("the skills used last can't be kept: %s", error)


log = logging.getLogger(__name__)
AskPerson: TypeAlias = Callable[[Question], Awaitable[Reply]]
JOINING = ("end_skill", "run_skill_script")
FOLDER = "skills"
NOT_HERE = "are not here or can't be allowed beforehand"
OFF = "Skills are switched off in skills.yaml (global.enabled)."


@frozen
class SkillContext:
    """The conversation that skills belong to: its id and ``root``. ``asks``: whether confirming tools makes a
    difference; ``why_not``: why a model can't be used; ``active``: the active skills of its transcript; ``recent``:
    the recently used ones; ``grantable`` separates rules that can allow something from others."""

    conversation: str = ""
    root: Path = Path()
    asks: Callable[[], bool] = lambda: True
    why_not: Callable[[str], str] = lambda model: ""
    active: Callable[[], tuple[ActiveSkill, ...]] = tuple[ActiveSkill, ...]
    recent: RecentSkills = field(default_factory=RecentSkills)
    grantable: Callable[[Iterable[str]], tuple[tuple[str, ...], tuple[str, ...]]] = lambda rules: (tuple(rules), ())


@frozen
class SkillChange:
    """A skill to start or end with the next request. Those of ``core`` and ``file`` start automatically."""

    id: str
    ends: bool = False
    request: ActivationRequest = field(default_factory=lambda: ActivationRequest(""))


class ActiveSkills:
    """The skills of one conversation."""

    def __init__(
        self, catalog: SkillCatalog, choices: SkillChoices, confirmed: ConfirmedSkills, context: SkillContext
    ) -> None:
        self.catalog = catalog
        self.choices = choices
        self.confirmed = confirmed
        self.context = context
        self.active = context.active
        """Returns the active skills, the newest last."""
        self.switched: dict[str, bool] = {}
        self._queued: deque[SkillChange] = deque()
        self._lock = threading.Lock()

    def found(self, key: str) -> Skill:
        """Return a usable skill. Blocks while folders are searched. Raises UsageError if there is none."""
        if not self.choices.enabled:
            raise UsageError(OFF, "Set it to true to use them.")
        key = key.strip().removeprefix(MENTION).removeprefix("@")
        skill = self.catalog.get(key)
        if skill is None:
            self.catalog.look()
            skill = self.catalog.get(key)
        if skill is None:
            ids = [each.id for each in self.catalog.usable()]
            close = similar(key, ids)
            known = f"Did you mean {', '.join(close)}?" if close else f"There are: {', '.join(ids) or 'none'}."
            raise UsageError(f"There is no skill {key[:80]!r}.", known)
        if skill.head.trouble:
            raise UsageError(f"The skill {skill.id} is broken: {skill.head.trouble}.", "Correct its SKILL.md.")
        return skill

    def offered(self, skill: Skill, *, for_subagent: bool = False) -> bool:
        """Return whether models see the skill and may start it."""
        choice = self.choices.of(skill.id)
        enabled = self.switched.get(skill.id, choice.enabled)
        return enabled and not skill.head.hidden and (choice.available_to_subagent or not for_subagent)

    def place(self, skill: Skill) -> str:
        """Return the name of a skill's folder for models, which is never an absolute path."""
        own = self.context.root / FOLDER / skill.id
        taken = os.path.lexists(own) and os.path.realpath(own) != os.path.realpath(skill.folder)
        return f"{MENTION}{skill.id}" if taken else f"{FOLDER}/{skill.id}"

    def modifier(self, skill: Skill) -> Modifier:
        tools, unknown = self.context.grantable(_located(rules_of(skill.head.tools), skill))
        model = "" if skill.head.model in {"inherit", "default"} else skill.head.model
        return Modifier(tools, skill.head.exclusive and bool(skill.head.tools), model, unknown)

    async def start(self, request: ActivationRequest, ask: AskPerson) -> SkillActivation:
        """Prepare an activation; the caller then changes the stack and adds the result to the conversation.

        Raises:
            UsageError: it can't be started; the message says why.
        """
        skill = await asyncio.to_thread(self.found, request.skill)
        request = replace(request, skill=skill.id, conversation=self.context.conversation)
        stack, modifier = SkillStack(request.chain), self.modifier(skill)
        if request.by == "model" and not self.offered(skill):
            why = "is started by the user only" if skill.head.hidden else "is switched off for models"
            raise SkillRefused(f"The skill {skill.id} {why}.", f"The user can start it with /{skill.id}.")
        if request.level == 1:
            return SkillActivation(request, (ActivationNote("metadata", _about(skill, self.place(skill)), True),))
        if skill.id in stack and request.level == 3:
            text = await asyncio.to_thread(further, skill, self.catalog.ingress, self.place(skill))
            return SkillActivation(request, (ActivationNote("instruction", text, True),))
        stack.check(skill.id, by=request.by)
        return await self._started(skill, request, modifier, ask)

    async def _started(
        self, skill: Skill, request: ActivationRequest, modifier: Modifier, ask: AskPerson
    ) -> SkillActivation:
        parameters = request.parameters[:MAX_PARAMETER_CHARS]
        given = (skill, self.catalog.ingress, self.place(skill), parameters)
        reading = partial(instructions, *given, whole=request.level == 3)
        missing = await asyncio.to_thread(self.context.why_not, modifier.model) if modifier.model else ""
        digest, text = await asyncio.to_thread(lambda: (digest_of(skill), reading()))
        model = "" if missing else modifier.model
        active = ActiveSkill(
            skill.id, request.id, digest, parameters, modifier.tools, modifier.exclusive, model, request.by
        )
        notes = [ActivationNote("instruction", framed(active, text), True)]
        if modifier.tools:
            notes.append(await self._permissions(active, ask))
        if modifier.unknown:
            text = f"Of the tools it names, these {NOT_HERE}: {', '.join(modifier.unknown)}."
            notes.append(ActivationNote("permissions", text, True))
        notes += _metadata(skill, request, replace(modifier, model=model), missing)
        await asyncio.to_thread(self.context.recent.used, skill.id)
        log.info("%s: %s started the skill %s at depth %d", request.conversation, request.by, skill.id, request.depth)
        return SkillActivation(request, tuple(notes), active)

    async def _permissions(self, active: ActiveSkill, ask: AskPerson) -> ActivationNote:
        tools = ", ".join(active.allowed_tools)
        if active.exclusive:
            tools = f"{tools}, and while it is active no others"
        if self.trusts(active):
            return ActivationNote("permissions", f"It may use without asking: {tools}.", True)
        if not self.context.asks():
            return ActivationNote("permissions", f"It is made for these tools: {tools}.", True)
        reply = await ask(_question(active))
        if reply.choice in {"deny", "text"}:
            said = f" They said: {reply.text.strip()}" if reply.by == "person" and reply.text.strip() else ""
            text = f"It is made for these tools: {tools}. The user is asked about each call as usual.{said}"
            return ActivationNote("permissions", text, True)
        try:
            await asyncio.to_thread(self.confirmed.add, active.id, active.digest, active.allowed_tools)
        except StorageError as error:
            return ActivationNote("permissions", f"It may use without asking, for now: {tools}. ({error})", True)
        return ActivationNote("permissions", f"It may use without asking: {tools}.", True)

    def trusts(self, active: ActiveSkill) -> bool:
        """Return whether the user confirmed the tools of an active skill with its content."""
        return self.confirmed.has(active.id, active.digest, active.allowed_tools)

    def again(self, active: ActiveSkill) -> str:
        """Return the instructions of an active skill again. Blocks. Raises UsageError if it is gone."""
        skill = self.found(active.id)
        changed = "" if digest_of(skill) == active.digest else "It has changed since it was started.\n\n"
        return changed + instructions(skill, self.catalog.ingress, self.place(skill), active.parameters)

    def granted(self) -> tuple[str, ...]:
        """Return the rules of active, confirmed skills, which need no question."""
        return tuple(dict.fromkeys(rule for one in self.active() if self.trusts(one) for rule in one.allowed_tools))

    def wanted(self) -> list[str]:
        """Return the names of all tools that active skills need."""
        return list(dict.fromkeys(rule.partition("(")[0] for one in self.active() for rule in one.allowed_tools))

    def limits(self) -> ActiveSkill | None:
        """Return the newest active skill that allows only its own tools; None if there is none."""
        return next((skill for skill in reversed(self.active()) if skill.exclusive), None)

    def model(self) -> str:
        """Return the model that the newest active skill asks for; empty if none."""
        return next((skill.model for skill in reversed(self.active()) if skill.model), "")

    def queue(self, change: SkillChange) -> None:
        """Add a change for the next request. Thread-safe."""
        with self._lock:
            if not change.ends and change.request.by != "person" and change.id in self.waiting():
                return
            self._queued.append(change)

    def waiting(self) -> list[str]:
        """Return the ids of skills that start with the next request."""
        begun: list[str] = []
        for change in tuple(self._queued):
            if change.ends and change.id in begun:
                begun.remove(change.id)
            elif not change.ends:
                begun.append(change.id)
        return begun

    def take_queued(self) -> Sequence[SkillChange]:
        """Return and remove the waiting changes, in order."""
        with self._lock:
            taken = tuple(self._queued)
            self._queued.clear()
        return taken


def problems_of(skills: ActiveSkills) -> list[str]:
    """Return the problems of skills.yaml and the skills, as sentences. Blocks."""
    found, choices = skills.catalog.look(), skills.choices
    unknown = choices.unknown([skill.id for skill in found])
    broken = [f"A skill can't be used: {skill.path}: {skill.head.trouble}" for skill in found if skill.head.trouble]
    return [sentence(each) for each in (*map(str, (*choices.problems, *unknown)), *broken)]


def active_skills(transcript: Transcript) -> str:
    """Return the active skills in one line; empty if none."""
    active = ", ".join(skill.id for skill in transcript.skills)
    return f"active: {active}" if active else ""


def active_folders(skills: ActiveSkills) -> Sequence[tuple[str, Path]]:
    """Return the ids and folders of the active skills, the newest last. Blocks."""
    found = (skills.catalog.get(one.id) for one in skills.active())
    return [(skill.id, folder_of(skill)) for skill in found if skill]


def folder_named(skills: ActiveSkills, id: str) -> Path | None:
    """Return the folder of the skill ``id``; None for an unknown or broken one. Blocks."""
    skill = skills.catalog.get(id) if skills.choices.enabled else None
    return folder_of(skill) if skill and not skill.head.trouble else None


def joining(skills: ActiveSkills) -> Sequence[str]:
    """Return the tools to list for the model while skills are active."""
    return (*JOINING, *skills.wanted()) if skills.active() else ()


def readable_folders(catalog: SkillCatalog, choices: SkillChoices) -> list[tuple[str, Path]]:
    """Return the folders of skills with their names for models, which do not reveal their place. Blocks."""
    usable = catalog.usable() if choices.enabled else ()
    short = [(f"{FOLDER}/{skill.id}", skill.folder) for skill in usable]
    return [*short, *((f"{MENTION}{skill.id}", skill.folder) for skill in usable)]


def _located(rules: Sequence[str], skill: Skill) -> Sequence[str]:
    """Return ``rules`` with full paths of the skill's own files. Blocks."""
    if not any("/" in rule for rule in rules):
        return rules
    names = [file.name for file in files_of(skill)]
    return [placed(rule, folder_of(skill), names) for rule in rules]


def _about(skill: Skill, place: str) -> str:
    parts = [f"{skill.id}: {skill.head.description}", f"Instructions: about {skill.tokens:,} tokens, in {place}."]
    if skill.head.hint:
        parts.append(f"Parameters: {skill.head.hint}")
    return "\n".join(parts)


def _metadata(skill: Skill, request: ActivationRequest, modifier: Modifier, missing: str) -> list[ActivationNote]:
    """Return the notes for the user."""
    why = {"file": ": matching file attached", "core": ": set in skills.yaml"}.get(request.by, "")
    notes = [ActivationNote("metadata", f"The skill {skill.id} started{why}.", False)]
    if modifier.model:
        notes.append(
            ActivationNote("warning", f"While the skill {skill.id} is active, {modifier.model} answers.", False)
        )
    if missing:
        text = f"The skill {skill.id} asks for the model {skill.head.model}; your model is used instead: {missing}"
        notes.append(ActivationNote("warning", text, False))
    if skill.large:
        notes.append(ActivationNote("warning", f"The skill {skill.id} is large: {skill.large}.", False))
    return notes


def _question(active: ActiveSkill) -> Question:
    return Question(
        "permission",
        f"Let the skill {active.id} use its tools without asking?",
        tool="activate_skill",
        args={"skill_id": active.id, "allowed_tools": list(active.allowed_tools)},
        reason="“Yes” applies until the skill changes, also in later sessions; “no” starts the skill and asks as usual",
        fixed=True,
    )
