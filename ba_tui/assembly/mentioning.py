"""Mentions of one conversation: where names come from, how what they name is read, judged, cleaned and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ba_tui.assembly.stock import Stock
from ba_tui.assembly.words import Tokens
from ba_tui.context.attachments import FOLDER, AttachedFiles, Attaching, Attachments, Speaker, Surroundings
from ba_tui.context.files import FileIndex
from ba_tui.context.mentions import MentionLines, MentionSource, Offering
from ba_tui.core.conversation import Library
from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.mentions import MentionKind, Suggestion
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.ports.skills import Skills
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.core.values import frozen
from ba_tui.ingress import shown
from ba_tui.permissions.paths import is_secret
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.verdicts import Deny, JudgedCall
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.editing.documents import detect
from ba_tui.tools.formats import head_and_tail
from ba_tui.tools.guards.secrets import secrets
from ba_tui.tools.visible import Visible

ROOM = 50_000
SHARE = 4
"""Attachments of a prompt may take this part of the window, and never more than ROOM tokens."""
SESSION = 12_000
"""Characters of another session that are given."""
KEPT = "it may hold secrets, and no secrets are attached"
AWAY = "it leads to {real}, outside this folder; to attach that, name it"
THEIRS = "only files of this project come with what its own commands say"


@frozen
class Links:
    """What mentions take from the rest of a conversation."""

    cwd: Path
    session: Path
    model: Callable[[], ModelInfo]
    skills: Callable[[], Skills | None]
    library: Callable[[], Library | None]


class Mentioning:
    """``offering`` is for faces, ``attaching`` goes along the conversation, as interceptor and as listener."""

    def __init__(self, stock: Stock, visible: Visible, tokens: Tokens, links: Links) -> None:
        self._stock = stock
        self._links = links
        self._nobody = Branch(Turn(), Transcript())
        workspace = stock.workspace

        def inside(path: Path) -> bool:
            return workspace.contains(path) or workspace.lends(path)

        kept = links.session.parent / FOLDER if links.session.name else None
        files = AttachedFiles(
            workspace.resolve,
            workspace.shown,
            inside,
            self._refused,
            self._secret,
            self._read,
            self._listed,
            kept,
            _decoded,
        )
        names = stock.registry.names
        around = Surroundings(
            files, self._clean, tokens.aside, self._room, links.skills, names, visible.show, self._session
        )
        attachments = Attachments(around)
        self.attaching = Attaching(attachments)
        sources: dict[MentionKind, MentionSource] = {
            "skill": self._skills,
            "tool": self._tools,
            "session": self._sessions,
        }
        self.offering = Offering(links.cwd, FileIndex(links.cwd, find_ripgrep()), sources, attachments.weigh)

    def _refused(self, text: str, by: Speaker) -> str:
        stock, workspace = self._stock, self._stock.workspace
        try:
            name, real = workspace.both(text)
        except BaError as error:
            return str(error)
        if is_secret(name) or is_secret(real):
            return KEPT
        inside = workspace.contains(real) or workspace.lends(real)
        if by == "project" and not inside:
            return THEIRS
        if workspace.contains(name) and not inside:
            # Whoever put the link there meant more by it than the person who names it may know.
            return AWAY.format(real=shown(real))
        # The person names it, so nobody need be asked; what is denied stays denied.
        judged = stock.permissions.judge(JudgedCall(stock.readers["read_file"], {"path": text}, self._links.cwd))
        return judged.reason if isinstance(judged, Deny) else ""

    def _secret(self, path: Path) -> bool:
        try:
            return secret_file(path, path.stat(), self._stock.workspace)
        except OSError:
            return False

    async def _read(self, path: str, lines: MentionLines | None) -> ToolResult:
        span = {"offset": lines[0], "limit": lines[1] - lines[0] + 1} if lines else {}
        return await self._run("read_file", {"path": path, **span})

    async def _listed(self, path: str) -> ToolResult:
        return await self._run("list_files", {"path": path})

    async def _run(self, name: str, args: dict[str, object]) -> ToolResult:
        return await self._stock.readers[name].run(args, Call("mention", self._nobody))

    async def _clean(self, name: str, result: ToolResult, branch: Branch) -> ToolResult:
        """As the result of a tool is: secrets are taken out, or the person is asked."""

        async def run(_: object, __: Call) -> ToolResult:
            return result

        reader = self._stock.readers["read_file"]
        tool = Tool("attachment", "", {}, run, facts=reader.facts)
        return await secrets(self._stock.sharing)(tool).run({"path": name}, Call("mention", branch))

    def _room(self) -> int:
        return min(ROOM, self._links.model().window // SHARE)

    def _session(self, key: str) -> tuple[str, ToolResult]:
        library = self._links.library()
        if library is None:
            raise UsageError("There are no sessions here.")
        info = library.find(key)
        text = head_and_tail("".join(library.export(info.id, "md")), SESSION, share=0.3)
        about = f"{info.title or 'untitled'}, {info.turns} turn{'' if info.turns == 1 else 's'}"
        return info.id, ToolResult(f"In Markdown:\n{text}", summary=about)

    def _skills(self) -> Sequence[Suggestion]:
        skills = self._links.skills()
        lines = skills.lines() if skills else ()
        usable = [line for line in lines if line.state not in {"broken", "shadowed"}]
        return [Suggestion("skill", "", line.id, line.description) for line in usable]

    def _tools(self) -> Sequence[Suggestion]:
        entries = self._stock.registry.entries()
        return [Suggestion("tool", "", entry.tool.name, entry.tool.description) for entry in entries]

    def _sessions(self) -> Sequence[Suggestion]:
        library = self._links.library()
        infos: Sequence[SessionInfo] = ()
        with suppress(StorageError):
            # Where there are none to be read, none are offered.
            infos = library.sessions() if library else ()
        ours = self._links.session.parent.name
        found = [info for info in infos if info.id != ours]
        return [Suggestion("session", f"session:{info.id}", info.title or info.id, info.preview) for info in found]


def _decoded(data: bytes) -> str:
    """The start of a file in whatever encoding it has; a character that is cut off at its end does not matter."""
    return data.decode(detect(data, whole=False).codec, "replace").removeprefix("\ufeff")
