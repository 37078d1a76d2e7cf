"""The tool run_skill_script: a script of a skill in a process of its own, with arguments and standard input.

Which scripts there are is ``skills.scripts``, what they need installed ``skill_environment``.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.messages import clean_json, clean_text
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText, Display, ScriptCall, Source, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.verdicts import Allow, Deny, judged_call
from ba_tui.processes.supervised import Program
from ba_tui.skills.dependencies import DISTRIBUTIONS, Environments, read_requirements
from ba_tui.skills.folders import variables_of
from ba_tui.skills.scripts import FOLDER, Allowed, SkillScript, digest, plain_name, script_of
from ba_tui.tools.builtin.shell import MAX_COMMAND_BYTES, MAX_SECONDS, Shell, observed
from ba_tui.tools.builtin.skill_environment import Installer, child_environment
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.running.background import Shells
from ba_tui.tools.running.command_runner import UNCONFINED, CommandRunner, RunRequest

NAME = "run_skill_script"
RUNNER = Path(__file__).with_name("script_input.py")
DEFAULT_SECONDS = 30.0
DISPLAY_CHARS = 2_000
CHANGED = "The script, or a file beside it, has changed since it was last allowed."
NODE = ("node", "tsx", "bun", "deno", "npx")
PACKAGES: Mapping[str, str] = {"node": "nodejs", "Rscript": "r-base", "lua": "lua5.4", "pwsh": "powershell"}
"""What systems call the package that brings a program, where that is another name."""
_MODULE = regex(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NODE_MODULE = regex(r"Cannot find (?:module|package) '([\w@./-]+)'")


@frozen
class SkillScripts:
    """``find`` the folder of a skill; raises BaError when there is no such skill. ``seconds``: time a script gets."""

    find: Callable[[str], Path]
    environments: Environments
    allowed: Allowed
    seconds: float = DEFAULT_SECONDS


@frozen
class ScriptPlace:
    """Where scripts run: in the workspace's root, with what commands have, among the conversation's ``shells``."""

    workspace: Workspace
    shell: Shell
    shells: Shells
    runner: CommandRunner = UNCONFINED


def run_skill_script_tool(definition: Definition, script_place: ScriptPlace, skills: SkillScripts) -> Tool:
    runs = _Runs(script_place, skills)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return await runs.run(tool, args, call)

    tool = Tool(
        NAME,
        definition.description,
        definition.input_schema,
        run,
        Effect.EXECUTE,
        timeout=None,
        facts=ToolFacts(category="skills", bulky=True, target_of=_target, confined=True),
        preview=runs.preview,
    )
    return tool


def _target(args: Mapping[str, Any]) -> str:
    """``skill/script``, which rules are about."""
    skill, name = str(args.get("skill_id") or ""), str(args.get("script_name") or "")
    return f"{skill}/{plain_name(skill, name)}" if name else skill


class _Runs:
    """The scripts of one conversation. ``_shown``: what a person was asked about, by script."""

    def __init__(self, script_place: ScriptPlace, skills: SkillScripts) -> None:
        self._place = script_place
        self._skills = skills
        self._installer = Installer(skills.environments, script_place.shell, script_place.runner)
        self._shown: dict[Path, str] = {}

    async def preview(self, args: Mapping[str, Any]) -> Display | None:
        """What the script would be given, and its source."""
        script, text = await self._read(args)
        place = f"skills/{script.skill}/{script.path.relative_to(script.folder).as_posix()}"
        return ScriptCall(place, tuple(clean_text(word) for word in _words(args)), clean_json(args.get("stdin")), text)

    async def _read(self, args: Mapping[str, Any]) -> tuple[SkillScript, str]:
        """The script and its source, for a person to see."""
        script = await self._script(args)
        self._shown[script.path], text = await asyncio.to_thread(lambda: (digest(script), script.text))
        return script, text

    async def run(self, tool: Tool, args: Mapping[str, Any], call: Call) -> ToolResult:
        script = await self._script(args)
        words, text = _words(args), _input(args)
        root = self._place.workspace.root
        await self._agreed(script, tool, args, call)
        runner, place = await self._runner(script, args, call, tool)
        seconds = min(float(args.get("timeout") or self._skills.seconds), MAX_SECONDS)

        def program(name: str) -> Program:
            chosen = script if name == args["script_name"] else script_of(script.skill, script.folder, name)
            argv = (sys.executable, "-I", "-S", str(RUNNER), text, *runner, str(chosen.path), *words)
            environment = {
                **child_environment(self._place.shell),
                **variables_of(script.folder),
                "AGENT_WORKSPACE_PATH": str(root),
                "MPLBACKEND": "Agg",
            }
            if script.runner[:1] == ("python",):
                # Some scripts import from the folder of their skill, where their instructions start them.
                environment["PYTHONPATH"] = str(script.folder)
            limits = {"core": 0, **self._place.shell.limits.for_seconds(seconds)}
            return Program(argv, root, environment, limits, readable=(script.folder, *place))

        request = RunRequest(tool, args, "script_name", program, root, seconds)
        try:
            outcome, notes = await self._place.runner.run(request, self._place.shells, call)
        except OSError as error:
            message = f"{script.shown} could not be started: {error.strerror or error}."
            raise Failed("resource_error", message) from error
        notes += _lacking(outcome.job.process.output.text(), script, args) if outcome.job.exit_code else []
        shown = self._place.workspace.shown(root)
        result = await asyncio.to_thread(observed, outcome, shown, seconds, notes)
        if isinstance(result.display, CommandText):
            given = f"{shlex.join([script.shown, *words])}{f' <<< {text}' if text else ''}"
            result = replace(result, display=replace(result.display, command=clipped(given, DISPLAY_CHARS)))
        return replace(result, kind="json") if not result.is_error and _is_json(result.text) else result

    async def _script(self, args: Mapping[str, Any]) -> SkillScript:
        return await asyncio.to_thread(self._look, args["skill_id"], args["script_name"])

    def _look(self, skill: str, name: str) -> SkillScript:
        try:
            folder = self._skills.find(skill)
        except UsageError as error:
            raise Failed("not_found", str(error), error.hint) from error
        return script_of(skill, folder, name)

    async def _agreed(self, script: SkillScript, tool: Tool, args: Mapping[str, Any], call: Call) -> None:
        """A rule that allows a script does not mean another one in its place."""
        now, before, shown = await asyncio.to_thread(self._states, script)
        if now not in {before, shown} and (before or shown):
            await self._ask_again(script, tool, args, call)
        try:
            await asyncio.to_thread(self._skills.allowed.note, script, now)
        except BaError as error:
            call.branch.emit(Notice(f"ba will ask about {script.shown} again: {error}", "warning", error.hint))

    def _states(self, script: SkillScript) -> tuple[str, str, str]:
        """What the script is now, was when it last ran, and was when a person was asked; empty for never."""
        return digest(script), self._skills.allowed.last(script), self._shown.get(script.path, "")

    async def _ask_again(self, script: SkillScript, tool: Tool, args: Mapping[str, Any], call: Call) -> None:
        judge, root = self._place.runner.judge, self._place.workspace.root
        verdict = await asyncio.to_thread(judge, judged_call(tool, args, root, call)) if judge else None
        if isinstance(verdict, Deny):
            raise Failed("permission_denied", verdict.reason)
        if isinstance(verdict, Allow) and not verdict.by:
            return
        _, text = await self._read(args)
        question = Question(
            "permission",
            f"Run {script.shown}, which has changed?",
            call_id=call.id,
            tool=tool.name,
            args=clean_json(dict(args)),
            preview=Source(f"skills/{script.skill}/{script.path.relative_to(script.folder).as_posix()}", text),
            reason=CHANGED,
            risks=("runs a command",),
            fixed=True,
        )
        reply = await call.ask(question)
        if reply.choice in {"deny", "text"}:
            del self._shown[script.path]
            words = "" if reply.by == "nobody" else "The person said: "
            said = f" {words}{reply.text.strip()}" if reply.text.strip() else ""
            raise Failed("permission_denied", f"{CHANGED} Running it was not allowed.{said}")

    async def _runner(
        self, script: SkillScript, args: Mapping[str, Any], call: Call, tool: Tool
    ) -> tuple[tuple[str, ...], tuple[Path, ...]]:
        """What goes before the script's path, and the folders that this needs beside the skill's own."""
        if not script.runner:
            return (), ()
        program, *more = script.runner
        match program:
            case "python":
                named = [str(name).strip() for name in args.get("packages") or ()]
                wanted = await asyncio.to_thread(read_requirements, script.skill, script.folder, named)
                if wanted is None:
                    return (sys.executable, "-B", "-X", "utf8"), ()
                try:
                    python = await self._installer.python(wanted, call, tool, self._place.workspace.root)
                except StorageError as error:
                    raise Failed("resource_error", str(error), error.hint) from error
                return (str(python), "-B", "-X", "utf8"), (self._skills.environments.place(wanted),)
            case "bash":
                path, more = self._place.shell.path, ["--noprofile", "--norc", *more]
            case _:
                path = await asyncio.to_thread(shutil.which, program)
        if path is None:
            message = f"{script.shown} needs {program}, which is not installed."
            install = f"{'brew' if sys.platform == 'darwin' else 'apt'} install {PACKAGES.get(program, program)}"
            raise Failed("dependency_error", message, f"Tell the person to install it ({install}), or go on without.")
        return (path, *more), ()


def _words(args: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of the script."""
    words = tuple(str(word) for word in args.get("args") or ())
    if any("\0" in word for word in words):
        raise Failed("invalid_parameters", "An argument holds a NUL character.")
    return words


def _input(args: Mapping[str, Any]) -> str:
    """What the script reads."""
    given = args.get("stdin")
    text = (
        "" if given is None else given if isinstance(given, str) else json.dumps(clean_json(given), ensure_ascii=False)
    )
    size = len("".join((text, *_words(args))).encode("utf-8", "surrogateescape"))
    if size > MAX_COMMAND_BYTES or "\0" in text:
        why = "hold a NUL character" if "\0" in text else f"are longer than {MAX_COMMAND_BYTES // 1000} KB"
        message = f"The arguments and the standard input {why}."
        raise Failed("invalid_parameters", message, "Write them to a file and give the script its path.")
    return text


def _lacking(output: str, script: SkillScript, args: Mapping[str, Any]) -> Sequence[str]:
    """Words about a module that the script misses, and what gets it."""
    if script.runner[:1] == ("python",) and (found := _MODULE.search(output)):
        name = found[1].partition(".")[0]
        if (script.folder / name).is_dir() or (script.folder / FOLDER / name).is_dir():
            return [f"{found[1]} is a module of the skill that it could not import"]
        packages = json.dumps([*(args.get("packages") or ()), DISTRIBUTIONS.get(name, name)], ensure_ascii=False)
        return [f"{name} is not installed for this script: call again with packages: {packages}; the person is asked"]
    if script.runner[:1] and script.runner[0] in NODE and (found := _NODE_MODULE.search(output)):
        where = next(
            (folder for folder in (script.path.parent, script.folder) if (folder / "package.json").is_file()), ""
        )
        how = f"npm install in {where}" if where else f"npm install {found[1]} in {script.path.parent}"
        return [f"{found[1]} is not installed for this script: tell the person to run {how}"]
    return []


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
