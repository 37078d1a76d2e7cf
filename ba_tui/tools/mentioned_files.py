"""Files that prompts mention: judged by the rules, read by the tools, cleaned like results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ba_tui.context.mentions import MentionLines
from ba_tui.context.ports import Speaker
from ba_tui.core.errors import BaError
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.ingress import shown
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.secrets.sharing import SecretSharing
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.tools.formats import head_and_tail
from ba_tui.tools.guards.output import secrets

SESSION = 12_000
"""Most characters attached of another session."""
KEPT = "it may contain secrets, and secrets are never attached"
AWAY = "it is a link to {real}, outside this folder; name that path to attach it"
THEIRS = "the project's own commands can attach only files of this project"


class MentionedFiles:
    """context.ports.AttachedFiles: files and folders of one conversation, read by the tools ``readers`` without their
    guards: the user names them, so no question is needed. ``judge`` applies the rules to the reading of a path,
    ``sharing`` decides about secrets as for results. Files from elsewhere are copied to ``kept``."""

    def __init__(
        self,
        workspace: Workspace,
        readers: Mapping[str, Tool],
        judge: Callable[[JudgedCall], Judgement],
        sharing: SecretSharing,
        kept: Path,
    ) -> None:
        self._workspace = workspace
        self._readers = readers
        self._judge = judge
        self._cleaning = secrets(sharing)
        self.kept = kept
        self.resolve, self.shown = workspace.resolve, workspace.shown
        self._nobody = Branch(Turn(), Transcript())

    async def clean(self, name: str, result: ToolResult, branch: Branch) -> ToolResult:
        """See AttachedFiles: as with the result of a tool."""

        async def run(_: object, __: Call) -> ToolResult:
            return result

        tool = Tool("attachment", "", {}, run, facts=self._readers["read_file"].facts)
        return await self._cleaning(tool).run({"path": name}, Call("mention", branch))

    def inside(self, path: Path) -> bool:
        """See AttachedFiles."""
        return self._workspace.contains(path) or self._workspace.lends(path)

    def refused(self, text: str, by: Speaker) -> str:
        """See AttachedFiles."""
        workspace = self._workspace
        try:
            name, real = workspace.both(text)
        except BaError as error:
            return str(error)
        if is_secret(name) or is_secret(real):
            return KEPT
        inside = self.inside(real)
        if by == "project" and not inside:
            return THEIRS
        if workspace.contains(name) and not inside:
            # The link may lead to more than the user, who names it, knows.
            return AWAY.format(real=shown(real))
        # Deny rules apply to mentions, too.
        judged = self._judge(JudgedCall(self._readers["read_file"], {"path": text}, workspace.root))
        return judged.reason if isinstance(judged, Deny) else ""

    def secret(self, path: Path) -> bool:
        """See AttachedFiles."""
        try:
            return secret_file(path, path.stat(), self._workspace)
        except OSError:
            return False

    async def read(self, path: str, lines: MentionLines | None) -> ToolResult:
        """See AttachedFiles."""
        span = {"offset": lines[0], "limit": lines[1] - lines[0] + 1} if lines else {}
        return await self._run("read_file", {"path": path, **span})

    async def listing(self, path: str) -> ToolResult:
        """See AttachedFiles."""
        return await self._run("list_files", {"path": path})

    async def _run(self, name: str, args: dict[str, object]) -> ToolResult:
        return await self._readers[name].run(args, Call("mention", self._nobody))


def shortened_session(text: str) -> str:
    """Return head and tail of another session, as attached."""
    return head_and_tail(text, SESSION, share=0.3)
