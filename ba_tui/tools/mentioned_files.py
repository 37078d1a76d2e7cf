"""Files that prompts mention: judged by the rules, read by the tools, cleaned as a tool's result is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ba_tui.context.mentions import MentionLines
from ba_tui.context.surroundings import AttachedFiles, Speaker
from ba_tui.core.errors import BaError
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.ingress import shown
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.tools.formats import head_and_tail

SESSION = 12_000
"""Characters of another session that are attached."""
KEPT = "it may contain secrets, and secrets are never attached"
AWAY = "it is a link to {real}, outside this folder; name that path to attach it"
THEIRS = "the project's own commands can attach only files of this project"


class MentionedFiles:
    """Files and folders of one conversation, read by the tools ``readers`` without their guards: the person names
    them, so nobody need be asked. ``judge`` tells what the rules say of reading a path, ``clean`` takes secrets out of
    a result or asks."""

    def __init__(
        self,
        workspace: Workspace,
        readers: Mapping[str, Tool],
        judge: Callable[[JudgedCall], Judgement],
        clean: Guard,
    ) -> None:
        self._workspace = workspace
        self._readers = readers
        self._judge = judge
        self._cleaning = clean
        self._nobody = Branch(Turn(), Transcript())

    def attached(self, kept: Path | None) -> AttachedFiles:
        """What attachments are made from; files from elsewhere are copied to ``kept``."""
        where = self._workspace
        return AttachedFiles(
            where.resolve,
            where.shown,
            self._inside,
            self._refused,
            self._secret,
            self._read,
            self._listed,
            kept,
        )

    async def clean(self, name: str, result: ToolResult, branch: Branch) -> ToolResult:
        """As the result of a tool is: secrets are taken out, or the person is asked."""

        async def run(_: object, __: Call) -> ToolResult:
            return result

        tool = Tool("attachment", "", {}, run, facts=self._readers["read_file"].facts)
        return await self._cleaning(tool).run({"path": name}, Call("mention", branch))

    def _inside(self, path: Path) -> bool:
        return self._workspace.contains(path) or self._workspace.lends(path)

    def _refused(self, text: str, by: Speaker) -> str:
        workspace = self._workspace
        try:
            name, real = workspace.both(text)
        except BaError as error:
            return str(error)
        if is_secret(name) or is_secret(real):
            return KEPT
        inside = self._inside(real)
        if by == "project" and not inside:
            return THEIRS
        if workspace.contains(name) and not inside:
            # Whoever put the link there meant more by it than the person who names it may know.
            return AWAY.format(real=shown(real))
        # What is denied stays denied.
        judged = self._judge(JudgedCall(self._readers["read_file"], {"path": text}, workspace.root))
        return judged.reason if isinstance(judged, Deny) else ""

    def _secret(self, path: Path) -> bool:
        try:
            return secret_file(path, path.stat(), self._workspace)
        except OSError:
            return False

    async def _read(self, path: str, lines: MentionLines | None) -> ToolResult:
        span = {"offset": lines[0], "limit": lines[1] - lines[0] + 1} if lines else {}
        return await self._run("read_file", {"path": path, **span})

    async def _listed(self, path: str) -> ToolResult:
        return await self._run("list_files", {"path": path})

    async def _run(self, name: str, args: dict[str, object]) -> ToolResult:
        return await self._readers[name].run(args, Call("mention", self._nobody))


def shortened_session(text: str) -> str:
    """Head and tail of another session, as much as is attached."""
    return head_and_tail(text, SESSION, share=0.3)
