"""Where commands run: in the sandbox first, and outside it when that failed there and a person or a rule allows it.

What confines is permissions/sandbox.py; processes are processes.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.events import Judged, args_hash
from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Question
from ba_tui.core.results import Command
from ba_tui.core.tool import Call, Tool
from ba_tui.permissions.sandbox import Sandbox
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.background import Outcome, Shells
from ba_tui.tools.failed import Failed
from ba_tui.tools.processes import Program

if TYPE_CHECKING:
    from ba_tui.tools.reaching import Network

Judge: TypeAlias = Callable[[Tool, Mapping[str, Any], Path], Allow | Deny | Ask]
Who: TypeAlias = Literal["rule", "mode", "person", "hook"]
AGAIN = "The run outside begins from the start."


@dataclass(frozen=True, slots=True)
class Errand:
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


@dataclass(frozen=True, slots=True)
class Cell:
    """``sandbox``: None where nothing is confined. ``judge`` says whether a call may run outside: an Allow must come
    from a rule (or a mode) that means outside."""

    sandbox: Sandbox | None = None
    judge: Judge | None = None
    network: Callable[[], Network] | None = None
    """Which hosts may be reached from a network of its own; None: none at all."""

    async def enclosed(self, program: Program) -> Program:
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

    def with_way(self, program: Program, text: str, call: Call, *, attended: bool) -> Program:
        """``program`` with a way to the hosts that are allowed, where it is confined in a network of its own.
        ``attended``: the call waits for it, so the person can be asked."""
        if self.network is None or program.confinement is None or not program.confinement.walled:
            return program
        from ba_tui.tools.outlet import Outlet  # noqa: PLC0415 - reading addresses is needed by few sessions
        from ba_tui.tools.reaching import Passes  # noqa: PLC0415

        preview = Command(text, str(program.folder))
        way = Outlet(Passes(self.network(), call, preview, attended=attended))
        return replace(program, environment={**program.environment, **way.environment}, way=way)

    async def run(self, errand: Errand, shells: Shells, call: Call) -> tuple[Outcome, list[str]]:
        """How it ended, and words about where it ran when that needs some.

        Raises:
            OSError: it could not be started. Failed: it must be confined and can't be.
        """
        program = await self.enclosed(errand.make(errand.text))
        program = self.with_way(program, errand.text, call, attended=True)
        outcome = await _ran(program, errand, shells, call)
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
        text, refused = await self._leave(errand, reason, call)
        if text is None:
            return outcome, [failed, refused]
        call.report(f"\n[outside the sandbox, as in it {reason}]\n")
        program = errand.make(text)
        ran = f"this is the run outside the sandbox; before, {failed}"
        if text != errand.text:
            ran += f"; the person changed what runs to: {text}"
        return await shells.run(program, text, errand.seconds, call), [ran]

    def _blame(self, sandbox: Sandbox, outcome: Outcome) -> str:
        process = outcome.job.process
        if outcome.moved or outcome.timed_out:
            return ""
        if process.exit_code is None and not process.started:
            return "it could not be set up"
        return sandbox.blame(process.output.text(), outcome.job.exit_code)

    async def _leave(self, errand: Errand, reason: str, call: Call) -> tuple[str | None, str]:
        """What to run outside, or None and why not."""
        verdict = await self._judged(errand, errand.args)
        match verdict:
            case Allow():
                _note(call, errand, ("allow", "rule" if verdict.by else "mode", verdict.by))
                return errand.text, ""
            case Deny(reason=why):
                _note(call, errand, ("deny", "rule" if verdict.by else "mode", verdict.by))
                return None, f"it may not run outside: {why}"
            case Ask():
                pass
        question = Question(
            "permission",
            "Run it outside the sandbox?",
            call_id=call.id,
            tool=errand.tool.name,
            args=clean_json(dict(errand.args)),
            preview=Command(errand.text, str(errand.folder)),
            reason=f"It failed in the sandbox: {reason}. {AGAIN}",
            risks=tuple(dict.fromkeys((*verdict.risks, "outside the workspace"))),
            timeout=verdict.timeout,
        )
        reply = await call.ask(question)
        refused = reply.choice in {"deny", "text"}
        by: dict[str, Who] = {"nobody": "mode", "hook": "hook"}
        _note(call, errand, ("deny" if refused else "allow", by.get(reply.by, "person"), ""))
        if refused:
            said = f" and said: {reply.text.strip()}" if reply.text.strip() else ""
            return None, f"running it outside was not allowed{said}"
        edited = (reply.edited or {}).get(errand.argument)
        if not isinstance(edited, str) or edited == errand.text:
            return errand.text, ""
        if "\0" in edited or not edited.strip():
            return None, "what the person changed it to can't be run"
        verdict = await self._judged(errand, {**errand.args, errand.argument: edited})
        return (None, f"changed so, it may not run: {verdict.reason}") if isinstance(verdict, Deny) else (edited, "")

    async def _judged(self, errand: Errand, args: Mapping[str, Any]) -> Allow | Deny | Ask:
        if self.judge is None:
            return Deny("nobody can be asked.")
        return await asyncio.to_thread(self.judge, errand.tool, args, errand.folder)


async def _ran(program: Program, errand: Errand, shells: Shells, call: Call) -> Outcome:
    try:
        outcome = await shells.run(program, errand.text, errand.seconds, call)
        if program.way:
            await program.way.passes.settle()
    except BaseException:
        if program.way:
            program.way.passes.end()
        raise
    return outcome


def _unreached(program: Program) -> list[str]:
    refused = program.way.passes.refused if program.way else {}
    return [f"{host} was not reached: {why}" for host, why in refused.items()]


def _note(call: Call, errand: Errand, decided: tuple[Literal["allow", "deny"], Who, str]) -> None:
    """For the audit: who decided about running outside."""
    word, who, rule = decided
    hash = args_hash(errand.args)
    call.branch.emit(Judged(call.id, errand.tool.name, word, who, rule, "to run outside the sandbox", hash))


OPEN = Cell()
