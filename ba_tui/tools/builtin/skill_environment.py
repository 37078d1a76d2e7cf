"""Installs what a skill needs into an environment of its own, once, after the person agreed.

What that is and where it goes stands in ``skills.dependencies``; this asks, runs the installer and cleans up.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ba_tui.core.events import Judged
from ba_tui.core.profiles import Profile
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText
from ba_tui.core.text.json_line import args_hash
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.verdicts import Allow, Ask, Deny, judged_call
from ba_tui.permissions.warnings import warnings_of
from ba_tui.processes.supervised import Program
from ba_tui.skills.dependencies import FILE, USABLE, Environments, Requirements, why_not
from ba_tui.tools.builtin.shell import Shell
from ba_tui.tools.failed import Failed
from ba_tui.tools.running.command_runner import UNCONFINED, CommandCaller, CommandRunner

NAME = "install_requirements"
"""What rules call it: ``install_requirements(pdf)``, or with packages that a call asks for beside those of the skill
``install_requirements(pdf requests)``."""
MAX_SECONDS = 900.0
END_SECONDS = 3.0
"""Seconds that an installer gets to end once it was cancelled."""
INSTALLING = Profile("working", packages=True)
CONFIGURATIONS = (".config/pip", ".pip", ".config/uv")
"""Below the home folder: which package index the person uses."""
REASON = (
    "The packages go into an environment of the skill's own, once. "
    "Installing them uses the network, and may run code that they bring."
)


def child_environment(shell: Shell) -> dict[str, str]:
    """What programs of skills see: nothing that leads Python to other packages than their own."""
    kept = {name: value for name, value in shell.inherited().items() if not name.startswith("PYTHON")}
    kept.pop("VIRTUAL_ENV", None)
    return kept


@frozen
class Installer:
    """``runner`` is where commands run; installers run in one of their own, which has the network."""

    environments: Environments
    shell: Shell
    runner: CommandRunner = UNCONFINED

    async def python(self, wanted: Requirements, call: Call, tool: Tool, folder: Path) -> Path:
        """The interpreter of the environment, which is made when it is not there yet; ``folder``: the workspace.

        Raises:
            Failed: the person did not agree, or it can't be made. StorageError: there is no place for it.
        """
        known = self.environments
        if ready := await asyncio.to_thread(known.python, wanted):
            return ready
        await self._consent(wanted, call, tool, folder)
        async with known.exclusive(
            wanted, lambda: call.report("Waiting: another ba is installing the same packages.\n")
        ):
            if ready := await asyncio.to_thread(known.python, wanted):
                return ready
            call.report(f"Installing what the skill {wanted.skill} needs: {wanted.names}\n")
            await asyncio.to_thread(known.begin, wanted)
            try:
                await self._install(wanted, call)
                python = await asyncio.to_thread(known.finish, wanted)
            finally:
                await asyncio.shield(asyncio.to_thread(known.drop, wanted))
        await asyncio.to_thread(known.tidy)
        return python

    async def _consent(self, wanted: Requirements, call: Call, tool: Tool, folder: Path) -> None:
        facts = ToolFacts(category=tool.facts.category, target_of=_skill)
        asked = replace(tool, name=NAME, facts=facts)
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
                raise Failed("permission_denied", f"{_needs(wanted)}, which may not be installed: {reason}", USABLE)
            case Ask(timeout=timeout):
                reply = await call.ask(await asyncio.to_thread(_question, wanted, call, args, timeout))
        if reply.choice in {"deny", "text"}:
            _note(call, args, "deny", "", "mode" if reply.by == "nobody" else reply.by)
            said = f" {reply.text.strip()}" if reply.text.strip() else ""
            raise Failed(
                "permission_denied",
                f"{_needs(wanted)}, and installing that was not allowed.{said}",
                f"{USABLE} Go on without them, and say so.",
            )
        _note(call, args, "allow", "", "hook" if reply.by == "hook" else "person")

    async def _install(self, wanted: Requirements, call: Call) -> None:
        runner = self._runner(wanted)
        commands = await asyncio.to_thread(self.environments.commands, wanted)
        environment = {**child_environment(self.shell), "PYTHONDONTWRITEBYTECODE": "1", "UV_HTTP_RETRIES": "1"}
        if self.runner.sandbox and self.runner.sandbox.reach.home is None:
            # There is no folder for caches that could be written then.
            environment |= {"UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}
        limits = {"core": 0, **self.shell.limits.for_seconds(MAX_SECONDS)}
        for argv in commands:
            program = await runner.confine(Program(argv, wanted.folder, environment, limits), INSTALLING)
            try:
                code, output = await _finished(program, call)
            except OSError as error:
                raise Failed("resource_error", f"{argv[0]} could not be started: {error.strerror}.", USABLE) from error
            if code:
                what, cure = why_not(wanted, output)
                raise Failed("dependency_error", f"{_needs(wanted)}: {what}. {USABLE}", cure)

    def _runner(self, wanted: Requirements) -> CommandRunner:
        """Where the installer may write the environment only, and use the network."""
        if self.runner.sandbox is None:
            return UNCONFINED
        reach = self.runner.sandbox.reach
        home = reach.home
        readable = (*reach.readable, wanted.folder, *((home / name for name in CONFIGURATIONS) if home else ()))
        roots = (self.environments.place(wanted),)
        reach = replace(reach, roots=roots, writable=(), readable=readable, network=True)
        return CommandRunner(Sandbox(reach, self.runner.sandbox.mode))


async def _finished(program: Program, call: Call) -> tuple[int, str]:
    """Run it to its end, its output to the call's pane; its exit code and what it printed. Cancelling ends it."""
    from ba_tui.processes.children import Process  # noqa: PLC0415 - few skills need one

    def report(text: str) -> None:
        if text:
            call.report(text)

    process = Process(program, listener=report)
    stop = process.listen(report)
    try:
        async with asyncio.timeout(MAX_SECONDS):
            await process.ended.wait()
    except TimeoutError:
        process.let_go(keep=True)
        await process.ended.wait()
        return 124, f"it took longer than {MAX_SECONDS:g} s"
    except BaseException:
        process.end()
        # What it still writes while it ends would be left behind in what is removed now.
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await process.ended.wait()
        process.let_go(keep=False)
        raise
    finally:
        stop()
    code = process.exit_code
    return 1 if code is None else code, process.output.text()


def _question(wanted: Requirements, call: Call, args: Mapping[str, Any], timeout: float | None) -> Question:
    lines = "\n".join(f"# {line}" for line in wanted.lines)
    places = tuple(f"It does not come from your package index: {line}" for line in wanted.elsewhere[:8])
    return Question(
        "permission",
        f"Install packages for the skill {wanted.skill}?",
        call_id=call.id,
        tool=NAME,
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
    """For the audit."""
    call.branch.emit(Judged(call.id, NAME, word, by, rule, "to install what a skill needs", args_hash(args)))
