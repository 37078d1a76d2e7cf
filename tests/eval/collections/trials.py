"""Tries one thing of a collection as ba would: it is loaded, and where that can be done here, used."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.agent_files.agent_file import agent_of
from ba_tui.agent_files.catalog import read_agent
from ba_tui.context.commands import CommandFile, read_command
from ba_tui.context.own_commands import expand
from ba_tui.core.errors import BaError
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.hooks.runner import HookEvent, Hooks, SessionFacts
from ba_tui.ingress import Ingress
from ba_tui.settings.hooks import Hook, read_claude
from ba_tui.skills.activation import ActivationRequest
from ba_tui.skills.active import ActiveSkills, ConfirmedSkills, SkillContext
from ba_tui.skills.catalog import SkillCatalog, SkillChoices, SkillRoot
from ba_tui.skills.validator import check
from ba_tui.tools.claude_calls import claude_calls, claude_names
from tests.delegating.house import AnyModel
from tests.eval.collections.found import CollectionKind, FoundItem
from tests.eval.collections.settings import read_settings

SECONDS = 8.0
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("shell", {"command": "rm -rf / --no-preserve-root"}),
    ("write_file", {"path": ".env", "content": "KEY=1\n"}),
    ("edit_file", {"path": "main.py", "old_string": "a", "new_string": "b"}),
    ("read_file", {"path": ".env"}),
    ("web_fetch", {"url": "https://example.org/"}),
    ("grep", {"pattern": "x"}),
)
"""What guards are tried with."""


@frozen
class Tried:
    """How one thing fared. ``works`` is None where nothing was tried; ``unsupported`` names what of it is not done,
    ``reason`` why it was refused or does not work; ``answer`` what a hook decided."""

    kind: CollectionKind
    name: str
    loaded: bool
    works: bool | None = None
    unsupported: tuple[str, ...] = ()
    reason: str = ""
    answer: str = ""


class Trials:
    """For one checkout. ``tools`` are the names of ba's; hooks run only where bubblewrap can hold them."""

    def __init__(self, checkout: Path, tools: Collection[str], scratch: Path) -> None:
        self.checkout = checkout
        self._scratch = scratch
        self._ingress = Ingress(checkout, (), lambda path, status: False, str)
        self._means = AnyModel(lambda: tools)
        self._skills: dict[Path, ActiveSkills] = {}

    async def tried(self, item: FoundItem) -> list[Tried]:
        """Everything that the file of ``item`` holds."""
        name = item.path.relative_to(self.checkout).as_posix()
        match item.kind:
            case "skills":
                return [await self._skill(item.path, name)]
            case "agents":
                return [self._agent(item.path, name)]
            case "commands":
                return [await self._command(item.path, name)]
            case "hooks":
                return [each async for each in self._hooks(item.path, name)]
            case "settings":
                return list(_settings(item.path, name))

    async def _skill(self, folder: Path, name: str) -> Tried:
        active = self._skills.get(folder.parent)
        if active is None:
            catalog = SkillCatalog([SkillRoot(folder.parent, "user")], self._ingress)
            confirmed = ConfirmedSkills(self._scratch / "confirmed.yaml")
            active = ActiveSkills(catalog, SkillChoices(), confirmed, SkillContext(root=self._scratch))
            self._skills[folder.parent] = active
        skill = next((each for each in active.catalog.all() if each.folder == folder), None)
        if skill is None:
            return Tried("skills", name, False, reason="it is not found beside the others of its folder")
        if skill.head.trouble:
            return Tried("skills", name, False, reason=skill.head.trouble)
        named = (*skill.warnings, *(f"format: {error}" for error in check(folder).errors))
        if skill.shadowed:
            return Tried("skills", name, True, None, named)

        async def yes(question: Question) -> Reply:
            return Reply("once")

        try:
            await active.start(ActivationRequest(skill.id, "person", "a.csv"), yes)
        except BaError as error:
            return Tried("skills", name, True, False, named, error.with_hint)
        return Tried("skills", name, True, True, named)

    def _agent(self, path: Path, name: str) -> Tried:
        try:
            agent = agent_of(read_agent(path, "user", self._ingress), path, "user", self._means)
        except OSError as error:
            return Tried("agents", name, False, reason=str(error))
        return Tried("agents", name, not agent.trouble, None, agent.unsupported, agent.trouble)

    async def _command(self, path: Path, name: str) -> Tried:
        command = read_command(CommandFile(path.stem, "user", name), path.read_bytes())
        if command.trouble:
            return Tried("commands", name, False, reason=command.trouble.removeprefix(f"{name}:").strip())

        async def run(script: str) -> str:
            return "(printed)"

        done = await expand(command.body, "first 'second word'", run, str)
        works = bool(done.text) and "$ARGUMENTS" not in done.text.replace("\\$ARGUMENTS", "")
        return Tried("commands", name, True, works, reason="" if works else "its arguments are not put in")

    async def _hooks(self, path: Path, name: str) -> AsyncIterator[Tried]:
        hooks, problems = read_claude(path)
        for problem in problems:
            yield Tried("hooks", name, False, reason=problem.removeprefix(f"{path}: "))
        for hook in hooks:
            if hook.event != "pre_tool" or hook.prompt or not shutil.which("bwrap"):
                yield Tried("hooks", f"{name}: {hook.label}", True)
                continue
            yield await self._guard(hook, path, name)

    async def _guard(self, hook: Hook, path: Path, name: str) -> Tried:
        """Have a hook answer a call that its matcher knows, confined: it is somebody else's program."""
        tool, args = next(
            ((_tool(tool), args) for tool, args in CALLS if hook.matches((tool, *claude_names(tool)))), (None, {})
        )
        label = f"{name}: {hook.label}"
        if tool is None:
            return Tried("hooks", label, True)
        with tempfile.TemporaryDirectory(dir=self._scratch) as work:
            project = self._installed(path, Path(work))
            home = Path(work, "home")
            (home / ".claude").mkdir(parents=True)
            environment = {"PATH": _path(), "HOME": str(home), "UV_OFFLINE": "1"}
            environment["CLAUDE_PLUGIN_ROOT"] = str(path.parent.parent)
            inner = _confined(hook, self.checkout, project, Path(work))
            confined = replace(hook, command=inner, args=None, timeout=SECONDS)
            facts = SessionFacts("s", Path(work, "t.jsonl"), project, project, environment, lambda: "default")
            told = claude_calls(tool.name, args, project)
            verdict = await Hooks([confined], facts, str).fire(
                HookEvent("pre_tool", names=claude_names(tool.name), tellings={"claude": told, "ba": told})
            )
        warned = [notice.text for notice in verdict.notices if notice.level != "info"]
        trouble = "; ".join(text.removeprefix(f"{confined.label} ") for text in warned)
        answer = verdict.decision or "no objection"
        return Tried("hooks", label, True, not trouble, reason=trouble, answer=f"{tool.name}: {answer}")

    def _installed(self, path: Path, work: Path) -> Path:
        """The project that the hooks of a file are for: the checkout, else one with the scripts beside that file in
        the place where installers put them."""
        if ".claude" in path.relative_to(self.checkout).parts:
            return self.checkout
        project = work / "project"
        scripts = project / ".claude" / "hooks"
        scripts.mkdir(parents=True)
        for file in path.parent.iterdir():
            if file.is_file() and file.suffix != ".json":
                shutil.copy(file, scripts)
        return project


def _settings(path: Path, name: str) -> Iterator[Tried]:
    read = read_settings(path)
    for key in read.honoured:
        yield Tried("settings", f"{name}: {key}", True, True)
    for key, why in read.named.items():
        yield Tried("settings", f"{name}: {key}", False, unsupported=(f"{key}: {why}",))
    for key in read.unread:
        yield Tried("settings", f"{name}: {key}", False, reason="ba does not read it")


def _tool(name: str) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult("")

    return Tool(name, "", {}, run)


def _path() -> str:
    """Where programs are looked for, those of this environment first: many hooks are started with uv."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def _confined(hook: Hook, checkout: Path, project: Path, work: Path) -> str:
    """The hook's command in a namespace of its own: without a network, and writing only into ``work``."""
    inner = shlex.join([hook.command, *hook.args]) if hook.args is not None else hook.command
    held = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    folders = ["--tmpfs", "/tmp", "--ro-bind", str(checkout), str(checkout), "--bind", str(work), str(work)]
    return shlex.join(["bwrap", *held, *folders, "--chdir", str(project), "bash", "-c", inner])
