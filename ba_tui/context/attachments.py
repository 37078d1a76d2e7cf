"""What comes with a prompt for what it mentions: files by their type, folders, sessions, tools and skills.

How mentions are read is in ``mentions``; every means to read, judge and clean is given.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.context.copies import copied, size_in_words, stamp
from ba_tui.context.mentions import MOST, MentionLines, Named, named
from ba_tui.context.session_data import JSON, dataset_kind
from ba_tui.context.surroundings import Speaker, Surroundings
from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.core.messages import Block, Message, clean_text, reminder
from ba_tui.core.ports.mentions import ATTACHED, Weight
from ba_tui.core.results import Source, ToolResult
from ba_tui.core.text.markup import OURS, neutralized
from ba_tui.core.text.wording import nearest, one_line
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

FOLDER = "attachments"
SMALL = 10_000
"""Bytes up to which JSON comes whole, as most of it is settings; of all other data, the profile."""
PROFILE_TOKENS = 1_500
"""About what a profile takes at most."""
LARGE = 50_000_000
WEIGHED = 64
NAMED = 300

Words: TypeAlias = tuple[tuple[str, Speaker], ...]
"""Texts that were said together, each with whose words it is."""
READ = frozenset({"file", "dataset", "session", "table", "resource"})
"""Kinds of which something is given."""
KEPT = "it contains secrets, and secrets are never attached"


@frozen
class Target:
    """What a mention names. ``path`` for files and folders, as it was resolved."""

    kind: str
    name: str
    path: Path | None = None
    lines: MentionLines | None = None
    by: Speaker = "person"


@frozen
class Attachment:
    """``what`` says type and size; ``result`` None when nothing of it is given, and ``trouble`` why; ``remark``: what
    is odd of what is given."""

    name: str
    what: str
    result: ToolResult | None = None
    trouble: str = ""
    handled: tuple[str, ...] = ()
    remark: str = ""

    @property
    def line(self) -> str:
        by = f"; can be handled by {', '.join(f'@{id}' for id in self.handled)}" if self.handled else ""
        trouble = f" (not attached: {self.trouble})" if self.trouble else ""
        return f"- {one_line(self.name, NAMED)}: {self.what}{by}{trouble}"

    @property
    def why(self) -> str:
        """Why nothing of it is given, for the person."""
        named = self.trouble.startswith(self.name.partition(":")[0])
        return f"{'' if named else f'{self.name}: '}{self.trouble.rstrip('.')}."

    @property
    def note(self) -> Message | None:
        if self.result is None:
            return None
        name = one_line(self.name, NAMED)
        text = f"{name}{ATTACHED}{self.result.text}"
        return reminder(neutralized(text, OURS), *self.result.attachments)


@dataclass(slots=True)
class AttachResult:
    """``notes`` go to the model, ``notices`` to the person; ``files`` are the paths of what was attached."""

    notes: list[Message] = field(default_factory=list[Message])
    notices: list[Notice] = field(default_factory=list[Notice])
    files: list[str] = field(default_factory=list[str])


class Attachments:
    """For one conversation."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._weighed: dict[tuple[object, ...], Weight] = {}
        self._told: set[str] = set()
        """Bare words that were said to name nothing: once is enough, they may be people."""

    async def weigh(self, text: str) -> Sequence[Weight]:
        """See core.mentions.Mentions."""
        targets, _ = await self._targets(((text, "person"),))
        weights: list[Weight] = []
        for target in targets:
            if target.kind not in READ - {"resource"}:
                # What a server gives is known once it is asked.
                continue
            if target.kind == "dataset":
                weights.append(Weight(clean_text(target.name), PROFILE_TOKENS))
                continue
            key = (target, *await asyncio.to_thread(stamp, target.path))
            if key not in self._weighed:
                while len(self._weighed) >= WEIGHED:
                    self._weighed.pop(next(iter(self._weighed)))
                self._weighed[key] = self._weight(await self._read(target))
            weights.append(self._weighed[key])
        sizes = await asyncio.to_thread(self._skills) if any(target.kind == "skill" for target in targets) else {}
        skills = [
            Weight(f"skill {target.name}", sizes.get(target.name, 0)) for target in targets if target.kind == "skill"
        ]
        return [*_fitting(weights, self._around.room), *skills]

    def _weight(self, made: Attachment) -> Weight:
        note = made.note
        return Weight(clean_text(made.name), self._around.tokens([note]) if note else 0, made.trouble)

    async def made(self, words: Words, branch: Branch) -> AttachResult:
        """What goes with ``words``. Tools and skills that they name are there with the next request."""
        targets, unknown = await self._targets(words)
        outcome = AttachResult()
        unknown = [each for each in unknown if not (each.bare and each.shown in self._told)]
        self._told |= {each.shown for each in unknown if each.bare}
        if unknown:
            names = ", ".join(f"@{each.shown[:80]}" for each in unknown[:3]) + (" …" if len(unknown) > 3 else "")
            one = len(unknown) == 1
            meant = await self._meant(unknown[0]) if one else ""
            outcome.notices.append(
                Notice(f"{names}: not found; sent as text.", "info", f"Did you mean @{meant}?" if meant else "")
            )
        if shown := [target.name for target in targets if target.kind == "tool"]:
            self._around.show(shown)
        for target in targets:
            if target.kind == "skill":
                await self._start(target.name, outcome)
        read = [await self._attached(target, branch) for target in targets if target.kind in READ]
        if read:
            await self._add(read, outcome)
        outcome.files = [str(target.path) for target in targets if target.kind == "file"]
        return outcome

    async def _meant(self, named: Named) -> str:
        """What a mention of nothing was probably meant to name."""
        words, _ = next((reading for reading in named.readings() if reading[1]), (named.shown, None))
        path = "." in words or "/" in words
        known = [] if path else [*await asyncio.to_thread(self._skills), *self._around.tools()]
        found = nearest(words, known) or await self._around.nearest(words)
        return f'"{found}"' if " " in found else found

    async def _start(self, id: str, outcome: AttachResult) -> None:
        skills = self._around.skills
        try:
            if skills:
                await asyncio.to_thread(skills.activate, id)
        except BaError as error:
            outcome.notices.append(Notice(str(error), "warning", error.hint))

    async def _add(self, read: Sequence[Attachment], outcome: AttachResult) -> None:
        room, sizes = self._around.room, list[str]()
        kept: list[Attachment] = []
        for made in read:
            note = made.note
            tokens = self._around.tokens([note]) if note else 0
            if tokens > room:
                trouble = f"about {tokens:,} tokens, and {room:,} are left for attachments"
                made = replace(made, result=None, trouble=trouble)
            elif note:
                room -= tokens
                sizes.append(f"{made.name} ({tokens:,} tokens)")
            kept.append(made)
        skills = self._around.skills
        if skills:
            names = [made.name.partition(":")[0] for made in kept if not made.trouble or made.handled]
            await asyncio.to_thread(skills.attach, names)
        listed = "\n".join(made.line for made in kept)
        outcome.notes.append(reminder(neutralized(f"With the prompt the person attached:\n{listed}", OURS)))
        outcome.notes += [note for made in kept if (note := made.note)]
        if sizes:
            outcome.notices.append(Notice(f"Attached: {', '.join(sizes)}.", "info"))
        for made in kept:
            if made.remark:
                outcome.notices.append(Notice(f"{made.name}: {made.remark}.", "info"))
            if made.trouble:
                outcome.notices.append(Notice(f"Not attached: {made.why}", "warning"))

    # What a mention names

    async def _targets(self, words: Words) -> tuple[list[Target], list[Named]]:
        targets, unresolved = await asyncio.to_thread(self._found, words)
        tables = [await self._table(each) for each in unresolved]
        targets += [table for table in dict.fromkeys(tables) if table]
        return targets, [each for each, table in zip(unresolved, tables, strict=True) if not table and each.looks_meant]

    async def _table(self, each: Named) -> Target | None:
        for text in [text for text, lines in each.readings() if lines is None and each.kind in {"", "file", "metric"}]:
            if self._around.data.remote(text):
                return Target("resource", text)
            if await self._around.data.names(text):
                return Target("table", text)
            if await self._around.data.names_files(text):
                return Target("dataset", text)
        return None

    def _found(self, words: Words) -> tuple[list[Target], list[Named]]:
        found: dict[tuple[object, ...], Target] = {}
        unknown: list[Named] = []
        for each, by in ((each, by) for text, by in words for each in named(text)[:MOST]):
            target = self._target(each)
            if target:
                found.setdefault((target.kind, target.path or target.name, target.lines), replace(target, by=by))
            else:
                unknown.append(each)
        return list(found.values()), unknown

    def _target(self, each: Named) -> Target | None:
        if each.kind in {"", "file"}:
            for text, lines in each.readings():
                if path := self._existing(text):
                    return Target("dataset" if lines is None and _is_data(path) else "file", text, path, lines)
        for kind in ("skill", "tool"):
            if each.kind in {"", kind}:
                ids = self._skills() if kind == "skill" else self._around.tools()
                for text, _ in each.readings():
                    if text in ids:
                        return Target(kind, text)
        return Target("session", each.text.rstrip(".,;!?)")) if each.kind == "session" else None

    def _existing(self, text: str) -> Path | None:
        try:
            path = self._around.files.resolve(text)
            return path if os.path.lexists(path) else None
        except (BaError, OSError, ValueError):
            return None

    def _skills(self) -> dict[str, int]:
        """Those that can be started, with the tokens of their instructions."""
        skills = self._around.skills
        usable = {"active", "waiting", "on", "off"}
        return {line.id: line.tokens for line in skills.lines() if line.state in usable} if skills else {}

    # What is given for it

    async def _attached(self, target: Target, branch: Branch) -> Attachment:
        files = self._around.files
        if target.path and not files.inside(target.path) and files.kept and not files.refused(target.name, target.by):
            if await asyncio.to_thread(files.secret, target.path):
                return Attachment(target.name, "a file that can't be attached", trouble=KEPT)
            try:
                copy = await asyncio.to_thread(copied, target.path, files.kept)
            except (OSError, BaError) as error:
                return Attachment(target.name, "a file from elsewhere", trouble=f"it can't be copied: {_why(error)}")
            target = replace(target, name=f"{FOLDER}/{copy.name}", path=copy, by="person")
        if target.kind == "dataset" and target.path and await asyncio.to_thread(_is_large, target.path):
            size = await asyncio.to_thread(size_in_words, target.path)
            branch.emit(Notice(f"Reading {target.name}, {size}. Esc stops it.", "info"))
        made = await self._read(target)
        if made.result is None:
            return made
        return replace(made, result=await self._around.clean(made.name, made.result, branch))

    async def _read(self, target: Target) -> Attachment:
        if target.path is None:
            return await (self._session(target) if target.kind == "session" else self._data(target))
        files = self._around.files
        shown = files.shown(target.path)
        if not files.inside(target.path):
            shown = target.name
        name = f"{shown}:{target.lines[0]}-{target.lines[1]}" if target.lines else shown
        refused = files.refused(target.name, target.by)
        if refused or await asyncio.to_thread(files.secret, target.path):
            refused = refused or KEPT
            return Attachment(name, "a file that can't be attached", trouble=refused)
        try:
            what, result = await self._content(target)
        except (BaError, OSError) as error:
            size = await asyncio.to_thread(size_in_words, target.path)
            # What a tool tells a model to do about lines is nothing for the person.
            why = str(error) if target.lines and isinstance(error, BaError) else _why(error)
            return Attachment(name, size, trouble=why, handled=await self._handlers(shown))
        return Attachment(name, what, result, handled=await self._handlers(shown), remark=_cut(result, target.lines))

    async def _content(self, target: Target) -> tuple[str, ToolResult]:
        path = target.path
        assert path
        mode = (await asyncio.to_thread(path.stat)).st_mode
        if stat.S_ISDIR(mode):
            return "a folder", await self._around.files.listing(str(path))
        if not stat.S_ISREG(mode):
            raise OSError("it is not a regular file")
        size, kind = await asyncio.to_thread(size_in_words, path), dataset_kind(path.name)
        if target.kind == "dataset":
            return f"{kind}, {size}", await self._around.data.register(self._around.files.shown(path))
        result = await self._around.files.read(str(path), target.lines)
        if kind and not target.lines:
            return f"{kind}, {size}", result
        what = {"Image": "image", "Document": "document"}.get(_first(result.attachments), "")
        what = what or {"pdf": "PDF document", "ipynb": "notebook"}.get(path.suffix.lower().lstrip("."), "text")
        return f"{what}, {size}", result

    async def _data(self, target: Target) -> Attachment:
        read = self._around.data.register if target.kind == "dataset" else self._around.data.read
        what = "a resource of an MCP server" if target.kind == "resource" else "data of this session"
        try:
            return Attachment(target.name, what, await read(target.name))
        except BaError as error:
            return Attachment(target.name, what, trouble=error.with_hint)

    async def _session(self, target: Target) -> Attachment:
        try:
            id, result = await asyncio.to_thread(self._around.session, target.name)
        except BaError as error:
            return Attachment(f"session {target.name}", "a session", trouble=error.with_hint)
        return Attachment(f"session {id}", result.summary, result)

    async def _handlers(self, name: str) -> tuple[str, ...]:
        skills = self._around.skills
        return tuple(await asyncio.to_thread(skills.handlers, name)) if skills else ()


def _is_data(path: Path) -> bool:
    """Whether the file is given as a table. Blocks."""
    kind = dataset_kind(path.name)
    try:
        return bool(kind) and path.is_file() and (kind != JSON or path.stat().st_size > SMALL)
    except OSError:
        return False


def _is_large(path: Path) -> bool:
    """Whether reading the file takes so long that the person should know. Blocks."""
    try:
        return path.stat().st_size > LARGE
    except OSError:
        return False


def _fitting(weights: Sequence[Weight], room: int) -> Sequence[Weight]:
    """What is beyond the room is not going to be attached."""
    kept: list[Weight] = []
    for weight in weights:
        fits = weight.tokens <= room
        room -= weight.tokens if fits else 0
        kept.append(weight if fits else Weight(weight.name, 0, f"too large: {weight.tokens:,} tokens"))
    return kept


def _cut(result: ToolResult, lines: MentionLines | None) -> str:
    """What to say where the file ends before the last of ``lines``."""
    if lines is None or not isinstance(result.display, Source):
        return ""
    last = lines[0] + result.display.text.count("\n")
    return f"the file ends at line {last}" if last < lines[1] else ""


def _first(blocks: Sequence[Block]) -> str:
    return type(blocks[0]).__name__ if blocks else ""


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{error} {getattr(error, 'hint', '')}".strip()
