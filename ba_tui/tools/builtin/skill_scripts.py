"""The tool run_skill_script: runs a script of a skill in a child process with arguments and standard input, and
installs the packages that it needs.

Packages are installed with uv into an environment of the skill, once, with the user's consent. ``skills.dependencies``
defines the environments, ``skills.scripts`` finds the scripts.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from ba_tui.core.effects import Profile
from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.events import Judged, Notice
from ba_tui.core.messages import clean_json, clean_text
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText, Display, ScriptCall, Source, ToolResult
from ba_tui.core.text.json_text import args_hash, read_json
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.permissions.lookalikes import warnings_of
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.verdicts import Allow, Ask, Deny, judged_call
from ba_tui.processes.children import Process
from ba_tui.processes.values import Program
from ba_tui.resources import UserFolders
from ba_tui.skills.content import variables_of
from ba_tui.skills.dependencies import (
    DISTRIBUTIONS,
    FILE,
    USABLE,
    Environments,
    Requirements,
    read_requirements,
    why_not,
)
from ba_tui.skills.scripts import FOLDER, AllowedScripts, SkillScript, digest, plain_name, script_of
from ba_tui.tools.builtin.shell import MAX_COMMAND_BYTES, MAX_SECONDS, observed
from ba_tui.tools.command_runner import UNCONFINED, CommandCaller, CommandRunner, RunRequest
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.shells import Shell, Shells
from ba_tui.tools.toolbox import SessionPlace

INSTALL_RULE = "install_requirements"
"""The name in rules: ``install_requirements(pdf)``, or with additional packages of a call ``install_requirements(pdf
requests)``."""
INSTALL_SECONDS = 900.0
END_SECONDS = 3.0
"""Seconds in which a cancelled installer can end."""
INSTALLING = Profile("working", packages=True)
CONFIGURATION = ".config/uv"
"""Folder below the home folder that names the user's package index."""
GET_UV = "Tell the user to run pip install 'ba-tui[skills]', or to install uv; then call again."
REASON = (
    "The packages go into an environment of the skill's own, once. "
    "Installing them uses the network, and may run code that they bring."
)


def child_environment(shell: Shell) -> dict[str, str]:
    """Return the variables for programs of skills, without those that lead Python to other packages."""
    kept = {name: value for name, value in shell.inherited().items() if not name.startswith("PYTHON")}
    kept.pop("VIRTUAL_ENV", None)
    return kept


@frozen
class Installer:
    """Installs packages for skills. ``runner`` runs commands; installers have a runner of their own with network
    access."""

    environments: Environments
    shell: Shell
    runner: CommandRunner = UNCONFINED

    async def python(self, wanted: Requirements, call: Call, tool: Tool, folder: Path) -> Path:
        """Return the interpreter of the skill's environment, creating the environment if needed. ``folder``: the
        workspace.

        Raises:
            ToolFailure: the user did not agree, uv is missing, or the installation failed. StorageError: there is no
                place for the environment.
        """
        known = self.environments
        if ready := await asyncio.to_thread(known.python, wanted):
            return ready
        uv = await asyncio.to_thread(known.find_uv)
        if uv is None:
            message = f"{_needs(wanted)}; ba installs packages with uv, which was not found. {USABLE}"
            raise ToolFailure("dependency_error", message, GET_UV)
        await self._consent(wanted, call, tool, folder)
        async with known.exclusive(
            wanted, lambda: call.report("Waiting: another ba is installing the same packages.\n")
        ):
            if ready := await asyncio.to_thread(known.python, wanted):
                return ready
            call.report(f"Installing what the skill {wanted.skill} needs: {wanted.names}\n")
            await asyncio.to_thread(known.begin, wanted)
            try:
                await self._install(wanted, uv, call)
                python = await asyncio.to_thread(known.finish, wanted)
            finally:
                await asyncio.shield(asyncio.to_thread(known.drop, wanted))
        await asyncio.to_thread(known.tidy)
        return python

    async def _consent(self, wanted: Requirements, call: Call, tool: Tool, folder: Path) -> None:
        facts = ToolFacts(category=tool.facts.category, target_of=_skill)
        asked = replace(tool, name=INSTALL_RULE, facts=facts)
        args: dict[str, Any] = {"skill_id": wanted.skill}
        if wanted.packages:
            args["packages"] = list(wanted.packages)
        judge = self.runner.judge
        request = judged_call(asked, args, folder, call)
        request = replace(request, ceiling=request.ceiling.of_any_tool())
        verdict = await asyncio.to_thread(judge, request) if judge else Ask("", None)
        match verdict:
            case Allow(by=by):
                _note(call, args, "allow", by, "rule" if by else "mode")
                return
            case Deny(reason=reason, by=by):
                _note(call, args, "deny", by, "rule" if by else "mode")
                raise ToolFailure(
                    "permission_denied", f"{_needs(wanted)}, which may not be installed: {reason}", USABLE
                )
            case Ask(timeout=timeout):
                reply = await call.ask(await asyncio.to_thread(_question, wanted, call, args, timeout))
        if reply.choice in {"deny", "text"}:
            _note(call, args, "deny", "", "mode" if reply.by == "nobody" else reply.by)
            said = f" {reply.text.strip()}" if reply.text.strip() else ""
            raise ToolFailure(
                "permission_denied",
                f"{_needs(wanted)}, and installing that was not allowed.{said}",
                f"{USABLE} Go on without them, and say so.",
            )
        _note(call, args, "allow", "", "hook" if reply.by == "hook" else "person")

    async def _install(self, wanted: Requirements, uv: str, call: Call) -> None:
        runner = self._runner(wanted)
        environment = {**child_environment(self.shell), "PYTHONDONTWRITEBYTECODE": "1", "UV_HTTP_RETRIES": "1"}
        if self.runner.sandbox and self.runner.sandbox.reach.home is None:
            # The sandbox then has no writable folder for caches.
            environment["UV_NO_CACHE"] = "1"
        limits = {"core": 0, **self.shell.limits.for_seconds(INSTALL_SECONDS)}
        for argv in self.environments.commands(wanted, uv):
            program = await runner.confine(Program(argv, wanted.folder, environment, limits), INSTALLING)
            try:
                code, output = await _finished(program, call)
            except OSError as error:
                raise ToolFailure(
                    "resource_error", f"{argv[0]} could not be started: {error.strerror}.", USABLE
                ) from error
            if code:
                what, cure = why_not(wanted, output)
                raise ToolFailure("dependency_error", f"{_needs(wanted)}: {what}. {USABLE}", cure)

    def _runner(self, wanted: Requirements) -> CommandRunner:
        """Return a runner that may write only the environment, and use the network."""
        if self.runner.sandbox is None:
            return UNCONFINED
        reach = self.runner.sandbox.reach
        home = reach.home
        readable = (*reach.readable, wanted.folder, *((home / CONFIGURATION,) if home else ()))
        roots = (self.environments.place(wanted),)
        reach = replace(reach, roots=roots, writable=(), readable=readable, network=True)
        return CommandRunner(Sandbox(reach, self.runner.sandbox.mode))


async def _finished(program: Program, call: Call) -> tuple[int, str]:
    """Run a program with its output in the call's pane; return its exit code and output. A cancel ends the program."""

    def report(text: str) -> None:
        if text:
            call.report(text)

    process = Process(program, listener=report)
    stop = process.listen(report)
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            await process.ended.wait()
    except TimeoutError:
        process.let_go(keep=True)
        await process.ended.wait()
        return 124, f"it took longer than {INSTALL_SECONDS:g} s"
    except BaseException:
        process.end()
        # Files that it writes while it ends would otherwise remain after the clean-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await process.ended.wait()
        process.let_go(keep=False)
        raise
    finally:
        stop()
    code = process.program.exit_code
    return 1 if code is None else code, process.output.text()


def _question(wanted: Requirements, call: Call, args: Mapping[str, Any], timeout: float | None) -> Question:
    lines = "\n".join(f"# {line}" for line in wanted.lines)
    places = tuple(f"It does not come from your package index: {line}" for line in wanted.elsewhere[:8])
    return Question(
        "permission",
        f"Install packages for the skill {wanted.skill}?",
        call_id=call.id,
        tool=INSTALL_RULE,
        args=dict(args),
        preview=CommandText(f"uv pip install {_asked_for(wanted)}\n{lines}"),
        reason=REASON,
        risks=("network", "runs a command"),
        warnings=(*places, *warnings_of({"requirements": list(wanted.lines)})),
        timeout=timeout,
        fixed=True,
    )


def _asked_for(wanted: Requirements) -> str:
    file = f"-r skills/{wanted.skill}/{FILE}" if len(wanted.lines) > len(wanted.packages) else ""
    return shlex.join(wanted.packages) if not file else " ".join([file, *map(shlex.quote, wanted.packages)])


def _skill(args: Mapping[str, Any]) -> str:
    return " ".join([str(args.get("skill_id", "")), *args.get("packages", ())])


def _needs(wanted: Requirements) -> str:
    return f"The skill {wanted.skill} needs {wanted.names}"


def _note(call: Call, args: Mapping[str, Any], word: Literal["allow", "deny"], rule: str, by: CommandCaller) -> None:
    """Record the decision for the audit."""
    call.branch.emit(Judged(call.id, INSTALL_RULE, word, by, rule, "to install what a skill needs", args_hash(args)))


NAME = "run_skill_script"
RUNNER = Path(__file__).with_name("script_input.py")
DEFAULT_SECONDS = 30.0
DISPLAY_CHARS = 2_000
CHANGED = "The script, or a file in its folder, has changed since it was last allowed."
NODE = ("node", "tsx", "bun", "deno", "npx")
PACKAGES: Mapping[str, str] = {"node": "nodejs", "Rscript": "r-base", "lua": "lua5.4", "pwsh": "powershell"}
"""Packages of programs, where their names differ."""
_MODULE = regex(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NODE_MODULE = regex(r"Cannot find (?:module|package) '([\w@./-]+)'")


def session_scripts_tool(
    definition: Definition,
    where: UserFolders,
    find: Callable[[str], Path],
    seconds: float,
    place: SessionPlace,
    shells: Shells,
    runner: CommandRunner,
) -> Tool:
    """Return the tool for a session. ``find`` returns a skill's folder or raises BaError."""
    environments, allowed = Environments(where.cache / "skills"), AllowedScripts(where.state / "skill_scripts.json")
    scripts = SkillScripts(find, environments, allowed, place.workspace, place.shell, shells, runner, seconds)
    return scripts.tool(definition)


def target(args: Mapping[str, Any]) -> str:
    """Return ``skill/script``, which rules match."""
    skill, name = str(args.get("skill_id") or ""), str(args.get("script_name") or "")
    return f"{skill}/{plain_name(skill, name)}" if name else skill


@frozen
class SkillScripts:
    """Runs the scripts of a conversation's skills in the root of ``workspace``, with the environment of commands, among
    its ``shells``. ``find`` returns a skill's folder or raises BaError; ``seconds``: time limit of a script; ``seen``:
    digests of the scripts that the user saw in a question."""

    find: Callable[[str], Path]
    environments: Environments
    allowed: AllowedScripts
    workspace: Workspace
    shell: Shell
    shells: Shells
    runner: CommandRunner = UNCONFINED
    seconds: float = DEFAULT_SECONDS
    seen: dict[Path, str] = field(default_factory=dict[Path, str])

    def tool(self, definition: Definition) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            return await self.run(tool, args, call)

        tool = definition.tool(run, preview=self.preview)
        return tool

    async def preview(self, args: Mapping[str, Any]) -> Display | None:
        """Return the script's arguments and input, and its source."""
        script, text = await self._read(args)
        place = f"skills/{script.skill}/{script.path.relative_to(script.folder).as_posix()}"
        return ScriptCall(place, tuple(clean_text(word) for word in _words(args)), clean_json(args.get("stdin")), text)

    async def _read(self, args: Mapping[str, Any]) -> tuple[SkillScript, str]:
        """Return the script and its source for the user."""
        script = await self._script(args)
        self.seen[script.path], text = await asyncio.to_thread(lambda: (digest(script), script.text))
        return script, text

    async def run(self, tool: Tool, args: Mapping[str, Any], call: Call) -> ToolResult:
        script = await self._script(args)
        words, text = _words(args), _input(args)
        root = self.workspace.root
        await self._agreed(script, tool, args, call)
        runner, place = await self._runner(script, args, call, tool)
        seconds = min(float(args.get("timeout") or self.seconds), MAX_SECONDS)

        def program(name: str) -> Program:
            chosen = script if name == args["script_name"] else script_of(script.skill, script.folder, name)
            argv = (sys.executable, "-I", "-S", str(RUNNER), text, *runner, str(chosen.path), *words)
            environment = {
                **child_environment(self.shell),
                **variables_of(script.folder),
                "AGENT_WORKSPACE_PATH": str(root),
                "MPLBACKEND": "Agg",
            }
            if script.runner[:1] == ("python",):
                # Some scripts import from the skill's folder, as if they were started there.
                environment["PYTHONPATH"] = str(script.folder)
            limits = {"core": 0, **self.shell.limits.for_seconds(seconds)}
            return Program(argv, root, environment, limits, readable=(script.folder, *place))

        request = RunRequest(tool, args, "script_name", program, root, seconds)
        try:
            outcome, notes = await self.runner.run(request, self.shells, call)
        except OSError as error:
            message = f"{script.shown} could not be started: {error.strerror or error}."
            raise ToolFailure("resource_error", message) from error
        notes += _lacking(outcome.job.process.output.text(), script, args) if outcome.job.exit_code else []
        shown = self.workspace.shown(root)
        result = await asyncio.to_thread(observed, outcome, shown, seconds, notes)
        if isinstance(result.display, CommandText):
            given = f"{shlex.join([script.shown, *words])}{f' <<< {text}' if text else ''}"
            result = replace(result, display=replace(result.display, command=clipped(given, DISPLAY_CHARS)))
        return replace(result, kind="json") if not result.is_error and _is_json(result.text) else result

    async def _script(self, args: Mapping[str, Any]) -> SkillScript:
        return await asyncio.to_thread(self._look, args["skill_id"], args["script_name"])

    def _look(self, skill: str, name: str) -> SkillScript:
        try:
            folder = self.find(skill)
        except UsageError as error:
            raise ToolFailure("not_found", str(error), error.hint) from error
        return script_of(skill, folder, name)

    async def _agreed(self, script: SkillScript, tool: Tool, args: Mapping[str, Any], call: Call) -> None:
        """Ask again if the script changed: a rule allows only the script that it was made for."""
        now, before, shown = await asyncio.to_thread(self._states, script)
        if now not in {before, shown} and (before or shown):
            await self._ask_again(script, tool, args, call)
        try:
            await asyncio.to_thread(self.allowed.note, script, now)
        except BaError as error:
            call.branch.emit(Notice(f"ba will ask about {script.shown} again: {error}", "warning", error.hint))

    def _states(self, script: SkillScript) -> tuple[str, str, str]:
        """Return the script's digest now, at its last run, and in the last question; empty for never."""
        return digest(script), self.allowed.last(script), self.seen.get(script.path, "")

    async def _ask_again(self, script: SkillScript, tool: Tool, args: Mapping[str, Any], call: Call) -> None:
        judge, root = self.runner.judge, self.workspace.root
        verdict = await asyncio.to_thread(judge, judged_call(tool, args, root, call)) if judge else None
        if isinstance(verdict, Deny):
            raise ToolFailure("permission_denied", verdict.reason)
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
            del self.seen[script.path]
            words = "" if reply.by == "nobody" else "The user said: "
            said = f" {words}{reply.text.strip()}" if reply.text.strip() else ""
            raise ToolFailure("permission_denied", f"{CHANGED} Running it was not allowed.{said}")

    async def _runner(
        self, script: SkillScript, args: Mapping[str, Any], call: Call, tool: Tool
    ) -> tuple[tuple[str, ...], tuple[Path, ...]]:
        """Return the words before the script's path, and the further folders that the script needs."""
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
                    python = await Installer(self.environments, self.shell, self.runner).python(
                        wanted, call, tool, self.workspace.root
                    )
                except StorageError as error:
                    raise ToolFailure("resource_error", str(error), error.hint) from error
                return (str(python), "-B", "-X", "utf8"), (self.environments.place(wanted),)
            case "bash":
                path, more = self.shell.path, ["--noprofile", "--norc", *more]
            case _:
                path = await asyncio.to_thread(shutil.which, program)
        if path is None:
            message = f"{script.shown} needs {program}, which is not installed."
            install = f"{'brew' if sys.platform == 'darwin' else 'apt'} install {PACKAGES.get(program, program)}"
            raise ToolFailure(
                "dependency_error", message, f"Tell the user to install it ({install}), or go on without."
            )
        return (path, *more), ()


def _words(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the arguments of the script."""
    words = tuple(str(word) for word in args.get("args") or ())
    if any("\0" in word for word in words):
        raise ToolFailure("invalid_parameters", "An argument holds a NUL character.")
    return words


def _input(args: Mapping[str, Any]) -> str:
    """Return the standard input of the script."""
    given = args.get("stdin")
    text = (
        "" if given is None else given if isinstance(given, str) else json.dumps(clean_json(given), ensure_ascii=False)
    )
    size = len("".join((text, *_words(args))).encode("utf-8", "surrogateescape"))
    if size > MAX_COMMAND_BYTES or "\0" in text:
        why = "hold a NUL character" if "\0" in text else f"are longer than {MAX_COMMAND_BYTES // 1000} KB"
        message = f"The arguments and the standard input {why}."
        raise ToolFailure("invalid_parameters", message, "Write them to a file and give the script its path.")
    return text


def _lacking(output: str, script: SkillScript, args: Mapping[str, Any]) -> Sequence[str]:
    """Return notes on a missing module and how to install it."""
    if script.runner[:1] == ("python",) and (found := _MODULE.search(output)):
        name = found[1].partition(".")[0]
        if (script.folder / name).is_dir() or (script.folder / FOLDER / name).is_dir():
            return [f"{found[1]} is a module of the skill that it could not import"]
        packages = json.dumps([*(args.get("packages") or ()), DISTRIBUTIONS.get(name, name)], ensure_ascii=False)
        return [f"{name} is not installed for this script: call again with packages: {packages}; the user is asked"]
    if script.runner[:1] and script.runner[0] in NODE and (found := _NODE_MODULE.search(output)):
        where = next(
            (folder for folder in (script.path.parent, script.folder) if (folder / "package.json").is_file()), ""
        )
        how = f"npm install in {where}" if where else f"npm install {found[1]} in {script.path.parent}"
        return [f"{found[1]} is not installed for this script: tell the user to run {how}"]
    return []


def _is_json(text: str) -> bool:
    return text.startswith(("{", "[")) and read_json(text) is not None
