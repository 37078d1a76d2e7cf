"""Runs commands: in the sandbox first, and outside it when they failed there and a rule or the person allows that.

What confines is permissions/sandbox.py; processes are processes.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.events import Judged, args_hash
from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Question
from ba_tui.core.results import Command
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox import Sandbox
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.background import Outcome, Shells
from ba_tui.tools.failed import Failed
from ba_tui.tools.processes import Program

if TYPE_CHECKING:
    from ba_tui.tools.egress_hosts import Network

Judge: TypeAlias = Callable[[Tool, Mapping[str, Any], Path], Allow | Deny | Ask]
Who: TypeAlias = Literal["rule", "mode", "person", "hook"]
AGAIN = "The run outside begins from the start."


@frozen
class RunRequest:
    """One call that runs ``text``: the ``argument`` of ``tool`` of that name. ``make`` a program of such a text."""

    tool: Tool
    args: Mapping[str, Any]
    argument: str
    make: Callable[[str], Program]
    folder: Path
    seconds: float = 0

    @property
    def text(self) -> str:
        return self.args[self.argument]


@frozen
class CommandRunner:
    """``sandbox``: None where nothing is confined. ``judge`` says whether a call may run outside: an Allow must come
    from a rule (or a mode) that means outside."""

    sandbox: Sandbox | None = None
    judge: Judge | None = None
    network: Callable[[], Network] | None = None
    """Which hosts may be reached from a network of its own; None: none at all."""

    async def confine(self, program: Program) -> Program:
        """``program``, confined where that can be. Raises Failed when it must be and can't."""
        if self.sandbox is None:
            return program
        try:
            return replace(program, confinement=await asyncio.to_thread(self.sandbox.confine, program.readable))
        except BaError as error:
            raise Failed("dependency_error", str(error), error.hint) from error
        except OSError as error:
            reason = error.strerror or error
            raise Failed("resource_error", f"The sandbox could not be prepared: {reason}.") from error

    def with_egress(self, program: Program, text: str, call: Call, *, attended: bool) -> Program:
        """``program`` with a way to the hosts that are allowed, where it is confined in a network of its own.
        ``attended``: the call waits for it, so the person can be asked."""
        if self.network is None or program.confinement is None or not program.confinement.walled:
            return program
        from ba_tui.tools.egress_hosts import HostDecisions  # noqa: PLC0415
        from ba_tui.tools.egress_proxy import EgressProxy  # noqa: PLC0415 - reading addresses is needed by few sessions

        preview = Command(text, str(program.folder))
        egress = EgressProxy(HostDecisions(self.network(), call, preview, attended=attended))
        return replace(program, environment={**program.environment, **egress.environment}, egress=egress)

    async def run(self, request: RunRequest, shells: Shells, call: Call) -> tuple[Outcome, list[str]]:
        """How it ended, and words about where it ran when that needs some.

        Raises:
            OSError: it could not be started. Failed: it must be confined and can't be.
        """
        program = await self.confine(request.make(request.text))
        program = self.with_egress(program, request.text, call, attended=True)
        outcome = await _run(program, request, shells, call)
        refused = _unreached(program)
        if program.confinement is None or self.sandbox is None:
            return outcome, []
        # Who has refused a host need not be asked for all of them at once.
        reason = "" if refused else self._blame(self.sandbox, outcome)
        if not reason:
            return outcome, refused
        failed = f"it ran in the sandbox, and {reason}"
        if self.sandbox.mode == "required" or self.judge is None:
            return outcome, [failed]
        text, refused = await self._ask_outside(request, reason, call)
        if text is None:
            return outcome, [failed, refused]
        call.report(f"\n[outside the sandbox, as in it {reason}]\n")
        program = request.make(text)
        ran = f"this is the run outside the sandbox; before, {failed}"
        if text != request.text:
            ran += f"; the person changed what runs to: {text}"
        return await shells.run(program, text, request.seconds, call), [ran]

    def _blame(self, sandbox: Sandbox, outcome: Outcome) -> str:
        process = outcome.job.process
        if outcome.moved or outcome.timed_out:
            return ""
        if process.exit_code is None and not process.started:
            return "it could not be set up"
        return sandbox.blame(process.output.text(), outcome.job.exit_code)

    async def _ask_outside(self, request: RunRequest, reason: str, call: Call) -> tuple[str | None, str]:
        """What to run outside, or None and why not."""
        verdict = await self._judged(request, request.args)
        match verdict:
            case Allow():
                _note(call, request, ("allow", "rule" if verdict.by else "mode", verdict.by))
                return request.text, ""
            case Deny(reason=why):
                _note(call, request, ("deny", "rule" if verdict.by else "mode", verdict.by))
                return None, f"it may not run outside: {why}"
            case Ask():
                pass
        question = Question(
            "permission",
            "Run it outside the sandbox?",
            call_id=call.id,
            tool=request.tool.name,
            args=clean_json(dict(request.args)),
            preview=Command(request.text, str(request.folder)),
            reason=f"It failed in the sandbox: {reason}. {AGAIN}",
            risks=tuple(dict.fromkeys((*verdict.risks, "outside the workspace"))),
            timeout=verdict.timeout,
        )
        reply = await call.ask(question)
        refused = reply.choice in {"deny", "text"}
        by: dict[str, Who] = {"nobody": "mode", "hook": "hook"}
        _note(call, request, ("deny" if refused else "allow", by.get(reply.by, "person"), ""))
        if refused:
            said = f" and said: {reply.text.strip()}" if reply.text.strip() else ""
            return None, f"running it outside was not allowed{said}"
        edited = (reply.edited or {}).get(request.argument)
        if not isinstance(edited, str) or edited == request.text:
            return request.text, ""
        if "\0" in edited or not edited.strip():
            return None, "what the person changed it to can't be run"
        verdict = await self._judged(request, {**request.args, request.argument: edited})
        return (None, f"changed so, it may not run: {verdict.reason}") if isinstance(verdict, Deny) else (edited, "")

    async def _judged(self, request: RunRequest, args: Mapping[str, Any]) -> Allow | Deny | Ask:
        if self.judge is None:
            return Deny("nobody can be asked.")
        return await asyncio.to_thread(self.judge, request.tool, args, request.folder)


async def _run(program: Program, request: RunRequest, shells: Shells, call: Call) -> Outcome:
    try:
        outcome = await shells.run(program, request.text, request.seconds, call)
        if program.egress:
            await program.egress.decisions.settle()
    except BaseException:
        if program.egress:
            program.egress.decisions.end()
        raise
    return outcome


def _unreached(program: Program) -> list[str]:
    refused = program.egress.decisions.refused if program.egress else {}
    return [f"{host} was not reached: {why}" for host, why in refused.items()]


def _note(call: Call, request: RunRequest, decided: tuple[Literal["allow", "deny"], Who, str]) -> None:
    """For the audit: who decided about running outside."""
    word, who, rule = decided
    hash = args_hash(request.args)
    call.branch.emit(Judged(call.id, request.tool.name, word, who, rule, "to run outside the sandbox", hash))


UNCONFINED = CommandRunner()
