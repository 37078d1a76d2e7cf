"""Attachments of a prompt for its mentions: files by their type, folders, sessions, tools and skills."""

from __future__ import annotations

import asyncio
import filecmp
import os
import shutil
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.context.files import FileIndex
from ba_tui.context.mentions import JSON, MOST, MentionLines, NamedMention, OtherSessions, dataset_kind, find_mentions
from ba_tui.context.ports import AttachedFiles, MentionedData, Speaker
from ba_tui.context.system_prompt import TouchedFiles
from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import BaError
from ba_tui.core.events import Event, Notice, Rewound, Steered, TurnStarted
from ba_tui.core.messages import Image, Message, clean_text, reminder
from ba_tui.core.ports.context import ATTACHED, Skills, Weight
from ba_tui.core.results import Source, ToolResult
from ba_tui.core.text.untrusted import OURS, neutralized
from ba_tui.core.text.wording import byte_size, nearest, one_line
from ba_tui.core.turn import Branch
from ba_tui.core.values import Once, frozen
from ba_tui.ingress import Owner
from ba_tui.providers.agent_model import AgentModel
from ba_tui.providers.token_calibration import Tokens

# Files from outside the project are copied to the session's folder.

LARGEST = 100_000_000
NAMES = 1_000


def copied(path: Path, folder: Path) -> Path:
    """Copy ``path`` to ``folder`` under a new name, and return it; the same content is not copied twice."""
    size = path.stat().st_size
    if not path.is_file():
        raise OSError("only single files can be attached from elsewhere")
    if size > LARGEST:
        raise OSError(f"it has {size:,} bytes; at most {LARGEST:,} are copied")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place in _names(folder, path):
        if not os.path.lexists(place):
            with path.open("rb") as source, place.open("xb") as copy:
                shutil.copyfileobj(source, copy)
            place.chmod(0o600)
            return place
        if filecmp.cmp(place, path, shallow=False):
            return place
    raise OSError("there are too many of that name")


def _names(folder: Path, path: Path) -> Iterator[Path]:
    yield folder / path.name
    yield from (folder / f"{path.stem}-{number}{path.suffix}" for number in range(2, NAMES))


def stamp(path: Path | None) -> tuple[int, int]:
    """Return its time and size, which show whether it has changed; zeros for None."""
    if path is None:
        return 0, 0
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


def size_in_words(path: Path) -> str:
    return byte_size(stamp(path)[1])


ROOM = 50_000
SHARE = 4
"""Attachments of a prompt may take one part in this many of the window, and at most ROOM tokens."""


@frozen
class AttachmentContext:
    """What attachments need: ``tools`` returns the names of all tools, ``show`` lists some for the model."""

    files: Once[AttachedFiles]
    tokens: Tokens
    model: AgentModel
    skills: Skills
    tools: Callable[[], Collection[str]]
    show: Callable[[Sequence[str]], None]
    sessions: OtherSessions
    index: FileIndex
    data: Once[MentionedData]

    @property
    def room(self) -> int:
        """Return the tokens that attachments of a prompt may have."""
        return min(ROOM, self.model.info().window // SHARE)


FOLDER = "attachments"
SMALL = 10_000
"""Bytes up to which JSON is attached whole, as most small files are settings; other data is attached as a profile."""
PROFILE_TOKENS = 1_500
"""About the largest size of a profile."""
LARGE = 50_000_000
"""Bytes of data from which on reading takes so long that the user is told."""
WEIGHED = 64
NAMED = 300

Words: TypeAlias = tuple[tuple[str, Speaker], ...]
"""Texts that were said together, each with its speaker."""
READ = frozenset({"file", "dataset", "session", "table", "resource"})
"""Kinds with content to attach."""
KEPT = "it contains secrets, and secrets are never attached"


@frozen
class Target:
    """The thing that a mention names. ``path``: the resolved path of a file or folder."""

    kind: str
    name: str
    path: Path | None = None
    lines: MentionLines | None = None
    by: Speaker = "person"


@frozen
class Attachment:
    """``what``: type and size; ``result``: None for the reason in ``trouble``; ``remark``: a peculiarity."""

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
        """Return for the user why there is no content."""
        has_name = self.trouble.startswith(self.name.partition(":")[0])
        return f"{'' if has_name else f'{self.name}: '}{self.trouble.rstrip('.')}."

    @property
    def note(self) -> Message | None:
        if self.result is None:
            return None
        name = one_line(self.name, NAMED)
        text = f"{name}{ATTACHED}{self.result.text}"
        return reminder(neutralized(text, OURS), *self.result.attachments)


@dataclass(slots=True)
class AttachResult:
    """``notes`` are for the model, ``notices`` for the user; ``files`` are the paths of attached files."""

    notes: list[Message] = field(default_factory=list[Message])
    notices: list[Notice] = field(default_factory=list[Notice])
    files: list[str] = field(default_factory=list[str])


class Attachments:
    """Makes the attachments of one conversation."""

    def __init__(self, context: AttachmentContext) -> None:
        self._context = context
        self._weighed: dict[tuple[object, ...], Weight] = {}
        self._told: set[str] = set()
        """Plain words that were reported as naming nothing: once is enough, they may be names of people."""

    async def weigh(self, text: str) -> Sequence[Weight]:
        targets, _ = await self._targets(((text, "person"),))
        weights: list[Weight] = []
        for target in targets:
            if target.kind not in READ - {"resource"}:
                # The server has to be asked for its content.
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
        return [*_fitting(weights, self._context.room), *skills]

    def _weight(self, made: Attachment) -> Weight:
        note = made.note
        return Weight(clean_text(made.name), self._context.tokens.aside([note]) if note else 0, made.trouble)

    async def made(self, words: Words, branch: Branch) -> AttachResult:
        """Return the attachments of ``words``. Tools and skills that they name are available with the next request."""
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
            self._context.show(shown)
        for target in targets:
            if target.kind == "skill":
                await self._start(target.name, outcome)
        read = [await self._attached(target, branch) for target in targets if target.kind in READ]
        if read:
            await self._add(read, outcome)
        outcome.files = [str(target.path) for target in targets if target.kind == "file"]
        return outcome

    async def _meant(self, mention: NamedMention) -> str:
        """Return the name that a mention of nothing probably meant."""
        words, _ = next((reading for reading in mention.readings() if reading[1]), (mention.shown, None))
        path = "." in words or "/" in words
        known = [] if path else [*await asyncio.to_thread(self._skills), *self._context.tools()]
        found = nearest(words, known) or await self._context.index.nearest(words)
        return f'"{found}"' if " " in found else found

    async def _start(self, id: str, outcome: AttachResult) -> None:
        try:
            await asyncio.to_thread(self._context.skills.activate, id)
        except BaError as error:
            outcome.notices.append(Notice(str(error), "warning", error.hint))

    async def _add(self, read: Sequence[Attachment], outcome: AttachResult) -> None:
        room, sizes = self._context.room, list[str]()
        kept: list[Attachment] = []
        for made in read:
            note = made.note
            tokens = self._context.tokens.aside([note]) if note else 0
            if tokens > room:
                trouble = f"about {tokens:,} tokens, and {room:,} are left for attachments"
                made = replace(made, result=None, trouble=trouble)
            elif note:
                room -= tokens
                sizes.append(f"{made.name} ({tokens:,} tokens)")
            kept.append(made)
        names = [made.name.partition(":")[0] for made in kept if not made.trouble or made.handled]
        await asyncio.to_thread(self._context.skills.attach, names)
        listed = "\n".join(made.line for made in kept)
        outcome.notes.append(reminder(neutralized(f"With the prompt the user attached:\n{listed}", OURS)))
        outcome.notes += [note for made in kept if (note := made.note)]
        if sizes:
            outcome.notices.append(Notice(f"Attached: {', '.join(sizes)}.", "info"))
        for made in kept:
            if made.remark:
                outcome.notices.append(Notice(f"{made.name}: {made.remark}.", "info"))
            if made.trouble:
                outcome.notices.append(Notice(f"Not attached: {made.why}", "warning"))

    async def _targets(self, words: Words) -> tuple[list[Target], list[NamedMention]]:
        targets, unresolved = await asyncio.to_thread(self._found, words)
        tables = [await self._table(each) for each in unresolved]
        targets += [table for table in dict.fromkeys(tables) if table]
        return targets, [each for each, table in zip(unresolved, tables, strict=True) if not table and each.looks_meant]

    async def _table(self, each: NamedMention) -> Target | None:
        for text in [text for text, lines in each.readings() if lines is None and each.kind in {"", "file", "metric"}]:
            if self._context.data().remote(text):
                return Target("resource", text)
            if await self._context.data().names(text):
                return Target("table", text)
            if await self._context.data().names_files(text):
                return Target("dataset", text)
        return None

    def _found(self, words: Words) -> tuple[list[Target], list[NamedMention]]:
        found: dict[tuple[object, ...], Target] = {}
        unknown: list[NamedMention] = []
        for each, by in ((each, by) for text, by in words for each in find_mentions(text)[:MOST]):
            target = self._target(each)
            if target:
                found.setdefault((target.kind, target.path or target.name, target.lines), replace(target, by=by))
            else:
                unknown.append(each)
        return list(found.values()), unknown

    def _target(self, each: NamedMention) -> Target | None:
        if each.kind in {"", "file"}:
            for text, lines in each.readings():
                if path := self._existing(text):
                    return Target("dataset" if lines is None and _is_data(path) else "file", text, path, lines)
        for kind in ("skill", "tool"):
            if each.kind in {"", kind}:
                ids = self._skills() if kind == "skill" else self._context.tools()
                for text, _ in each.readings():
                    if text in ids:
                        return Target(kind, text)
        return Target("session", each.text.rstrip(".,;!?)")) if each.kind == "session" else None

    def _existing(self, text: str) -> Path | None:
        try:
            path = self._context.files().resolve(text)
            return path if os.path.lexists(path) else None
        except (BaError, OSError, ValueError):
            return None

    def _skills(self) -> dict[str, int]:
        """Return the skills that can be started, with the tokens of their instructions."""
        usable = {"active", "waiting", "on", "off"}
        return {line.id: line.tokens for line in self._context.skills.lines() if line.state in usable}

    async def _attached(self, target: Target, branch: Branch) -> Attachment:
        files = self._context.files()
        if target.path and not files.inside(target.path) and files.kept and not files.refused(target.name, target.by):
            if await asyncio.to_thread(files.secret, target.path):
                return Attachment(target.name, "a file that can't be attached", trouble=KEPT)
            try:
                copy = await asyncio.to_thread(copied, target.path, files.kept)
            except (OSError, BaError) as error:
                return Attachment(target.name, "a file from elsewhere", trouble=f"it can't be copied: {_why(error)}")
            target = replace(target, name=f"{FOLDER}/{copy.name}", path=copy, by="person")
        if target.kind == "dataset":
            _, size = await asyncio.to_thread(stamp, target.path)
            if size > LARGE:
                branch.emit(Notice(f"Reading {target.name}, {byte_size(size)}. Esc stops it.", "info"))
        made = await self._read(target)
        if made.result is None:
            return made
        return replace(made, result=await self._context.files().clean(made.name, made.result, branch))

    async def _read(self, target: Target) -> Attachment:
        if target.path is None:
            return await (self._session(target) if target.kind == "session" else self._data(target))
        files = self._context.files()
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
            # A tool's advice to the model about lines is not for the user.
            why = str(error) if target.lines and isinstance(error, BaError) else _why(error)
            return Attachment(name, size, trouble=why, handled=await self._handlers(shown))
        return Attachment(name, what, result, handled=await self._handlers(shown), remark=_cut(result, target.lines))

    async def _content(self, target: Target) -> tuple[str, ToolResult]:
        path = target.path
        assert path
        mode = (await asyncio.to_thread(path.stat)).st_mode
        if stat.S_ISDIR(mode):
            return "a folder", await self._context.files().listing(str(path))
        if not stat.S_ISREG(mode):
            raise OSError("it is not a regular file")
        size, kind = await asyncio.to_thread(size_in_words, path), dataset_kind(path.name)
        if target.kind == "dataset":
            return f"{kind}, {size}", await self._context.data().register(self._context.files().shown(path))
        result = await self._context.files().read(str(path), target.lines)
        if kind and not target.lines:
            return f"{kind}, {size}", result
        what = next(("image" if isinstance(each, Image) else "document" for each in result.attachments), "")
        what = what or {"pdf": "PDF document", "ipynb": "notebook"}.get(path.suffix.lower().lstrip("."), "text")
        return f"{what}, {size}", result

    async def _data(self, target: Target) -> Attachment:
        read = self._context.data().register if target.kind == "dataset" else self._context.data().read
        what = "a resource of an MCP server" if target.kind == "resource" else "data of this session"
        try:
            return Attachment(target.name, what, await read(target.name))
        except BaError as error:
            return Attachment(target.name, what, trouble=error.with_hint)

    async def _session(self, target: Target) -> Attachment:
        try:
            id, result = await asyncio.to_thread(self._context.sessions.read, target.name)
        except BaError as error:
            return Attachment(f"session {target.name}", "a session", trouble=error.with_hint)
        return Attachment(f"session {id}", result.summary, result)

    async def _handlers(self, name: str) -> tuple[str, ...]:
        return tuple(await asyncio.to_thread(self._context.skills.handlers, name))


def _is_data(path: Path) -> bool:
    """Whether the file is attached as a table. Blocks."""
    kind = dataset_kind(path.name)
    try:
        return bool(kind) and path.is_file() and (kind != JSON or path.stat().st_size > SMALL)
    except OSError:
        return False


def _fitting(weights: Sequence[Weight], room: int) -> Sequence[Weight]:
    """Return ``weights``; those that do not fit into ``room`` have no tokens and a note."""
    kept: list[Weight] = []
    for weight in weights:
        fits = weight.tokens <= room
        room -= weight.tokens if fits else 0
        kept.append(weight if fits else Weight(weight.name, 0, f"too large: {weight.tokens:,} tokens"))
    return kept


def _cut(result: ToolResult, lines: MentionLines | None) -> str:
    """Return a remark for a file that ends before the last of ``lines``."""
    if lines is None or not isinstance(result.display, Source):
        return ""
    last = lines[0] + result.display.text.count("\n")
    return f"the file ends at line {last}" if last < lines[1] else ""


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{error} {getattr(error, 'hint', '')}".strip()


class AttachmentInterceptor(Interceptor):
    """Also a listener: attaches the user's mentions to their prompt, or to words that join a
    running turn, before the next request."""

    def __init__(self, attachments: Attachments, touched: TouchedFiles) -> None:
        self._attachments = attachments
        self._touched = touched
        self._said: deque[Words] = deque()

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(prompt=message, agent="main"):
                self._said.append(((message.text, "person"),))
            case Steered(message=Message(origin="steer") as message, agent="main"):
                self._said.append(((message.text, "person"),))
            case Rewound():
                self._said.clear()
            case _:
                pass

    def bring(self, text: str, by: Owner) -> None:
        """Note a text of a file that the newest prompt stands for, so that its mentions are attached."""
        self._said.append((*self._said.pop(), (text, by)))

    async def before(self, branch: Branch) -> None:
        while self._said and branch.name == "main":
            outcome = await self._attachments.made(self._said[0], branch)
            self._said.popleft()
            for path in outcome.files:
                self._touched.add(path)
            for note in outcome.notes:
                branch.emit(Steered(note))
            for notice in outcome.notices:
                branch.emit(notice)
