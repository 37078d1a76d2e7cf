"""The tools of one conversation with their guards, and all that they share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from ba_tui.assembly.admitting import ingress_for
from ba_tui.assembly.confining import limits_for, runner_for, sandbox_for
from ba_tui.assembly.hooking import hooking_for, started_by_hooks
from ba_tui.assembly.keeping import checkpointing, checkpoints_for
from ba_tui.assembly.scripting import script_tool
from ba_tui.assembly.skilling import Skilling
from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.core.events import Event
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Lent, Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.pending_changes import PendingChanges
from ba_tui.permissions.secrets.sharing import Sharing
from ba_tui.planning.workflows import flow_folders
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places, bundled, folder_slug, project_root
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.settings import HookLine, Settings
from ba_tui.tools.builtin.python import Python
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.builtin.shell import Shell
from ba_tui.tools.builtin.skill_scripts import ScriptPlace
from ba_tui.tools.definitions import Definition, load_definitions
from ba_tui.tools.guards.breaker import Health
from ba_tui.tools.guards.once import Memory
from ba_tui.tools.guards.output import Delivery
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.running.background import Shells
from ba_tui.tools.toolbox import SessionPlace, Shared, Supply, ToolContext, builtin_tools, pipeline, stocked
from ba_tui.tools.web.tools import SearchChoice, WebOptions

READERS = {"read_file", "list_files"}


async def nothing_said() -> Sequence[Event]:
    return ()


@frozen
class ToolSetting:
    """What a stock is made for: the folder, where its results go, what was said, how the model in use stands."""

    cwd: Path
    results: Artifacts
    history: ReadHistory = nothing_said
    fullness: Callable[[], float] = float
    modalities: Modalities = field(default_factory=Modalities)
    session: tuple[str, Path] = ("", Path())
    """The id and the file of the conversation; empty where there is none."""


class Shop(Protocol):
    """What a stock takes from the workshop."""

    settings: Settings
    hooks: Sequence[HookLine]
    where: Places
    shell: Shell

    def workspace(self, cwd: Path) -> Workspace: ...

    def policy(self, workspace: Workspace, sandbox: Sandbox | None) -> Policy: ...


def _lent(setting: ToolSetting) -> tuple[Lent, ...]:
    """What of a session's own folder may be read: long results, and copies of files that came with prompts."""
    results = Lent(FOLDER, setting.results.folder)
    return (results, Lent(ATTACHED, setting.session[1].parent / ATTACHED)) if setting.session[0] else (results,)


class Stock:
    """The tools of one conversation and all that they share."""

    def __init__(self, shop: Shop, setting: ToolSetting) -> None:
        root, settings = project_root(setting.cwd), shop.settings
        self.ingress = ingress_for(shop.where, root, settings.secrets)
        self.skilling = Skilling(shop.where, self.ingress, setting.cwd, setting.session[0])
        workspace = replace(
            shop.workspace(setting.cwd),
            lent=(*_lent(setting), *self.skilling.lent()),
            started=started_by_hooks(shop.hooks, shop.where, root),
        )
        self.workspace = workspace
        self.results = setting.results
        self.results.largest = int(settings.commands.output_mb * 1e6)
        self.sandbox = sandbox_for(settings, shop.where, workspace)
        self.permissions = shop.policy(workspace, self.sandbox)
        self.shells = Shells(setting.results.open)
        self.definitions = load_definitions(bundled("config") / "prompts" / "tools")
        place = SessionPlace(workspace, shop.shell, find_ripgrep(), settings.secrets)
        chosen = settings.web_search
        search = SearchChoice(chosen.backend, chosen.url, chosen.api_key_env, os.environ)
        web = WebOptions(settings.web.allow_private, search)
        limits, kept = limits_for(settings), PendingChanges(shop.where.set_aside / folder_slug(root))
        runner = runner_for(settings, kept, self.permissions, self.sandbox)
        python, modalities = Python(None, limits, runner), setting.modalities
        means = ToolContext(self.shells, setting.results, web, setting.history, python, runner, modalities)
        script_place, find = ScriptPlace(workspace, shop.shell, self.shells, runner), self.skilling.folder
        scripts = script_tool(self.definitions["run_skill_script"], script_place, settings, shop.where, find)
        tools = (*builtin_tools(self.definitions, place, means), *self.skilling.tools(self.definitions), scripts)
        self.readers = {tool.name: tool for tool in tools if tool.name in READERS}
        """Without their guards: for what the person names."""
        self.health = Health(tools)
        delivery = Delivery(setting.results, setting.fullness, settings.secrets)
        self.sharing = Sharing(settings.secrets)
        self.checkpoints = checkpoints_for(shop.where, setting.cwd, setting.session[0], settings)
        self.keeping = checkpointing(self.checkpoints)
        first = self.keeping.guard if setting.session[0] else None
        memory, settle = Memory(workspace.resolve), runner.review.settle
        shared = Shared(memory, self.health, delivery, self.sharing, first, settle)
        self.hooks = hooking_for(shop, self.ingress, setting.cwd, setting.session, lambda: self.permissions.mode)
        judge = self.skilling.bind(self.permissions)
        guard = pipeline(place, judge, self.permissions.remember, shared, self.hooks.guard)
        worker_settings = WorkerSettings(setting.cwd, shop.shell.inherited(), limits.for_seconds())
        confined = replace(worker_settings, confine=runner.confine_worker)
        supply = Supply(shop.where, self.ingress, worker_settings, settings.tool_dirs, confined)
        self._supply = supply
        self.registry = stocked(tools, guard, supply)

    def tools(self) -> dict[str, Tool]:
        """All that can be called now, by name."""
        return {entry.tool.name: entry.tool for entry in self.registry.entries()}

    def add_flows(self) -> Sequence[str]:
        """Workflows join as tools; says which are broken."""
        supply = self._supply
        self.registry.refresh()
        root = self.ingress.root
        trusted = root if supply.trust.trusted(root) else None
        folders = flow_folders(bundled("config"), supply.where.config, trusted)
        if not any(folder.is_dir() for folder in folders):
            return []
        # Templates take a fiftieth of a second to load, and most people have no workflows.
        from ba_tui.planning.flow_files import load_flows  # noqa: PLC0415
        from ba_tui.tools.builtin.flows import flow_tools  # noqa: PLC0415

        flows, broken = load_flows(folders, self.ingress.raw)
        made, wrong = flow_tools(flows, self.tools(), self.tools, self.results)
        problems = [str(problem) for problem in (*broken, *wrong)]
        for tool in made:
            try:
                self.registry.add(tool, origin="workflow", file=str(flows[tool.name].document.path))
            except ValueError as error:
                problems.append(str(error))
        return problems

    def confinement(self) -> str:
        return self.sandbox.state

    @property
    def search(self) -> Definition:
        return self.definitions["tool_search"]

    async def close(self) -> None:
        """End background shells and the workers of people's own tools; wait for what is being kept."""
        await self.keeping.close()
        await self.shells.close()
        await asyncio.to_thread(self.registry.close)
        await asyncio.to_thread(self.sandbox.close)
