"""Runs commands in the profile that they were allowed in, and looks afterwards at what they did to protected files.

What confines is permissions/sandbox; processes are the room processes'; who may leave the sandbox is judged before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.events import PERSON, Judged
from ba_tui.core.messages import clean_json
from ba_tui.core.profiles import WORKING, Profile
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText
from ba_tui.core.text.json_line import args_hash
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import Sandbox, SandboxConfinement
from ba_tui.permissions.sandbox.protected_watch import ProtectedWatch, WatchedRun
from ba_tui.permissions.trust.session_writes import SessionWrites
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement, judged_call
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.supervised import Program
from ba_tui.skills.folders import SkillFolders
from ba_tui.tools.failed import Failed
from ba_tui.tools.guards.recording import Unrecorded, recorded
from ba_tui.tools.running.background import ShellResult, Shells, Work
from ba_tui.tools.running.protected_review import ProtectedReview

if TYPE_CHECKING:
    from ba_tui.tools.running.egress_hosts import HostDecisions, NetworkAccess

CommandJudge: TypeAlias = Callable[[JudgedCall], Judgement]
CommandCaller: TypeAlias = Literal["rule", "mode", "person", "hook"]
WIDER = "Run it again with write access to the workspace?"
MARK = "masked-by-ba"
"""What placeholders begin with: see permissions/secrets/masking.py, which few sessions need here."""
MASKED = f"{MARK} and x stand for secrets of the same length; commands.read in the user's settings shows a file"
COPIED = " for this command: checksums and distinct values are not those on the disk"
UNWATCHED = ProtectedReview()
_WORDS = regex(r"[\s\"'`;|&<>()=:]+")
MOST_NAMED = 5
"""Files that a note names."""
OUTSIDE_HINT = "if it needs that, call it with outside: true, and the person is asked"
OWN_HINT = "if it needs that, run it in another terminal, or allow it by a rule such as outside(COMMAND *)"


class CommandEnvironment(Protocol):
    """Variables that keep what a command starts from running what a repository names. Blocks."""

    def __call__(
        self, folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], *, held: bool
    ) -> Mapping[str, str]: ...


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
class _ReadyCommand:
    """A command as it is to be started. ``run``: what is watched meanwhile; ``decisions``: about hosts it may reach."""

    program: Program
    held: SandboxConfinement | None = None
    run: WatchedRun | None = None
    decisions: HostDecisions | None = None


@frozen
class CommandRunner:
    """``sandbox``: None where nothing is confined. ``judge`` says whether something else may be run by the way, as an
    installer; ``widen`` whether a command that only reads may write after all."""

    sandbox: Sandbox | None = None
    judge: CommandJudge | None = None
    network: Callable[[], NetworkAccess] | None = None
    """Which hosts may be reached from a network of its own; None: none at all."""
    widen: CommandJudge | None = None
    review: ProtectedReview = UNWATCHED
    environment: CommandEnvironment | None = None
    skills: SkillFolders = field(default_factory=SkillFolders)
    """The folders of active skills: commands may read them, and are told where they lie."""
    writes: SessionWrites | None = None
    """Lists which files that run or instruct models are written; None where nothing is listed."""

    @property
    def watch(self) -> ProtectedWatch | None:
        """What notices which protected files commands change."""
        return self.review.watch

    def undecided(self) -> bool:
        """Whether protected files changed, and the person has not decided about that yet. Blocks."""
        return bool(self.watch and self.watch.pending)

    async def confine(self, program: Program, profile: Profile) -> Program:
        """``program``, confined as ``profile`` says where that can be. Raises Failed when it must be and can't."""
        return replace(program, confinement=await self._confinement(program, profile))

    async def _confinement(self, program: Program, profile: Profile) -> SandboxConfinement | None:
        if self.sandbox is None:
            return None
        try:
            return await asyncio.to_thread(self.sandbox.confine, profile, program.readable)
        except BaError as error:
            raise Failed("dependency_error", str(error), error.hint) from error
        except OSError as error:
            reason = error.strerror or error
            raise Failed("resource_error", f"The sandbox could not be prepared: {reason}.") from error

    def confine_worker(self) -> Confinement | None:
        """How a worker of a project's own tools is started; from then on it may change files at any time. Blocks.

        Raises:
            NotConfined: a sandbox is required, and there is none. StorageError: what it writes can't be recorded.
        """
        self.record("a tool of this project", held=True)
        if self.watch:
            self.watch.begin(WatchedRun("a tool of this project", WORKING, running=lambda: True))
        return self.sandbox.confine(WORKING) if self.sandbox else None

    def record(self, by: str, *, held: bool) -> None:
        """From now on ``by``, a server or a worker, may write files at any time. ``held``: it runs in a sandbox.
        Blocks. Raises StorageError."""
        held = held and self.sandbox is not None and self.sandbox.holds()
        if self.writes:
            self.writes.start(by, held=held)

    def _with_egress(self, ready: _ReadyCommand, text: str, call: Call, *, attended: bool) -> _ReadyCommand:
        """``ready`` with a way to the hosts that are allowed, where it is confined in a network of its own and may
        do more than read. ``attended``: the call waits for it, so the person can be asked."""
        held, program = ready.held, ready.program
        if self.network is None or held is None or not held.walled or held.profile.name == "reading":
            return ready
        from ba_tui.tools.running.egress_hosts import HostDecisions  # noqa: PLC0415
        from ba_tui.tools.running.egress_proxy import EgressProxy  # noqa: PLC0415 - reading addresses is needed by few sessions

        preview = CommandText(text, str(program.folder))
        decisions = HostDecisions(self.network(), call, preview, attended=attended)
        egress = EgressProxy(decisions)
        program = replace(program, environment={**program.environment, **egress.environment}, egress=egress)
        return replace(ready, program=program, decisions=decisions)

    async def run(self, request: RunRequest, shells: Shells, call: Call) -> tuple[ShellResult, list[str]]:
        """How it ended, and words about where it ran when that needs some.

        Raises:
            OSError: it could not be started. Failed: it must be confined and can't be.
        """
        outcome, notes = await self._run(request, call.profile, shells, call)
        tried = self._refused_write(outcome, call.profile)
        if not tried:
            return outcome, notes
        wider, why = await self._widened(request, tried, call)
        if wider is None:
            return outcome, [*notes, why]
        call.report(f"\n[again, with write access to the workspace: it tried to write {tried}]\n")
        try:
            async with recorded(self.writes, f"`{request.text}`") if self.writes else nullcontext():
                outcome, notes = await self._run(request, wider, shells, call)
        except Unrecorded as error:
            return outcome, [*notes, f"it was not run again: {error}"]
        return outcome, [f"this is its second run, with write access: as a reader it tried to write {tried}", *notes]

    async def start(self, request: RunRequest, shells: Shells, call: Call) -> Work:
        """Run it in the background. Raises as ``run`` does, and Failed when too many run."""
        ready = await self._begun(request, call.profile, call, attended=False)
        try:
            work = shells.start(ready.program, await self._label(request), call)
        except BaseException:
            await self._ended(ready.run)
            raise
        if self.watch and ready.run:
            self.watch.replace(ready.run, replace(ready.run, running=lambda: not work.ended))
        return work

    async def _run(
        self, request: RunRequest, profile: Profile, shells: Shells, call: Call
    ) -> tuple[ShellResult, list[str]]:
        ready = await self._begun(request, profile, call, attended=True)
        program, run = ready.program, ready.run
        try:
            outcome = await shells.run(program, await self._label(request), request.seconds, call)
            if ready.decisions:
                await ready.decisions.settle()
        except BaseException:
            if ready.decisions:
                ready.decisions.end()
            await asyncio.shield(self._ended(run))
            raise
        if outcome.moved and self.watch and run:
            self.watch.replace(run, replace(run, running=lambda: not outcome.job.ended))
            return outcome, []
        await self._ended(run)
        notes = [
            *_unreached(ready.decisions),
            *_mistaken(ready, request.text),
            *self._blame(outcome, ready, profile, call),
        ]
        if MARK in outcome.job.process.output.text():
            notes.append(MASKED)
        elif copies := _copies(ready, request.text):
            notes.append(f"ba masked secrets of {copies}{COPIED}")
        if outcome.job.exit_code and (
            meant := await asyncio.to_thread(self.skills.meant, request.text, program.folder)
        ):
            notes.append(meant)
        if profile.git and "GIT_CONFIG_COUNT" in program.environment:
            from ba_tui.permissions.sandbox.git_settings import skipped_hooks  # noqa: PLC0415 - only git needs it

            if hooks := await asyncio.to_thread(skipped_hooks, program.folder, request.text):
                notes.append(f"git ran without the hooks {hooks}; the setting commands.git_hooks allows them")
        return outcome, [*notes, *await self.review.notes(call)]

    async def _label(self, request: RunRequest) -> str:
        """The command as models read of it later, without whole paths of skills."""
        return await asyncio.to_thread(self.skills.named, request.text) if "/" in request.text else request.text

    async def _begun(self, request: RunRequest, profile: Profile, call: Call, *, attended: bool) -> _ReadyCommand:
        program, lent = request.make(request.text), await asyncio.to_thread(self.skills.variables)
        folders = dict.fromkeys(map(Path, lent.values()))
        program = replace(program, environment={**lent, **program.environment}, readable=(*program.readable, *folders))
        held = await self._confinement(program, profile)
        program = replace(program, confinement=held)
        if self.environment and profile.name != "outside":
            known = program.environment
            safe = await asyncio.to_thread(
                self.environment, program.folder, request.text, profile, known, held=held is not None and held.guarded
            )
            program = replace(program, environment={**known, **safe})
        ready = self._with_egress(_ReadyCommand(program, held), request.text, call, attended=attended)
        if self.watch is None or (profile.name == "reading" and (held is None or held.guarded)):
            return ready
        run = WatchedRun(request.text, profile, held is not None and held.guarded)
        await asyncio.to_thread(self.watch.begin, run, held.findings if held else None)
        return replace(ready, run=run)

    async def _ended(self, run: WatchedRun | None) -> None:
        if self.watch and run:
            await asyncio.to_thread(self.watch.end, run)

    def _blame(self, outcome: ShellResult, ready: _ReadyCommand, profile: Profile, call: Call) -> list[str]:
        """Why a command may have failed for the sandbox's sake. For the model to read; nothing follows from it."""
        process = outcome.job.process
        if self.sandbox is None or not process.confined or outcome.moved or outcome.timed_out:
            return []
        findings = ready.held.findings if ready.held else None
        linked = findings.linked if findings else ()
        return [*self._veiled(profile, self.sandbox), *self._failed(outcome, profile, call, self.sandbox, linked)]

    @staticmethod
    def _veiled(profile: Profile, sandbox: Sandbox) -> list[str]:
        """What a command saw otherwise than it is, so that nobody takes its answer for the whole."""
        notes: list[str] = []
        if profile.private:
            places = ", ".join(map(str, profile.private))
            notes.append(
                f"{places} {'is' if len(profile.private) == 1 else 'are'} not shown as on the disk: in the sandbox the "
                "folders for temporary files are private to this session, and most of the home folder is hidden"
            )
        if profile.masked:
            shown = ", ".join(sandbox.shown(path) for path in profile.masked[:MOST_NAMED])
            more = f" and {len(profile.masked) - MOST_NAMED} more" if len(profile.masked) > MOST_NAMED else ""
            notes.append(
                f"permission rules are about reading {shown}{more}, so the command did not see what is in there"
            )
        return notes

    @staticmethod
    def _failed(
        outcome: ShellResult, profile: Profile, call: Call, sandbox: Sandbox, linked: Collection[Path]
    ) -> list[str]:
        process = outcome.job.process
        if process.exit_code is None and not process.started:
            return ["it could not be set up in the sandbox"]
        printed = process.output.text()
        if outcome.job.exit_code and (hidden := sandbox.hidden_in(printed)):
            return [f"ba hides {hidden} from it; commands.read in the user's settings allows it"]
        why = sandbox.blame(printed, outcome.job.exit_code, linked)
        if not why:
            return []
        own = OWN_HINT if call.branch.name == PERSON else OUTSIDE_HINT
        hint = "" if sandbox.mode == "required" else f"; {own}"
        return [f"it ran {'as a reader' if profile.name == 'reading' else 'in the sandbox'}, and {why}{hint}"]

    def _refused_write(self, outcome: ShellResult, profile: Profile) -> str:
        """What a command that only reads tried to write, as it says itself; empty when it says nothing of the kind."""
        process = outcome.job.process
        if profile.name != "reading" or self.sandbox is None or not process.confined or not outcome.job.exit_code:
            return ""
        return self.sandbox.refused_write(process.output.text())

    async def _widened(self, request: RunRequest, tried: str, call: Call) -> tuple[Profile | None, str]:
        """The profile for a second run, or None and why there is none."""
        if self.widen is None:
            return None, f"it ran as a reader, and may not write {tried}"
        again = replace(judged_call(request.tool, request.args, request.folder, call), tried=tried)
        verdict = await asyncio.to_thread(self.widen, again)
        match verdict:
            case Allow(profile=profile):
                _note(call, request, ("allow", "rule" if verdict.by else "mode", verdict.by))
                return profile, ""
            case Deny(reason=why):
                _note(call, request, ("deny", "rule" if verdict.by else "mode", verdict.by))
                return None, f"it ran as a reader, and may not write {tried}: {why}"
            case Ask():
                pass
        question = Question(
            "permission",
            WIDER,
            call_id=call.id,
            tool=request.tool.name,
            args=clean_json(dict(request.args)),
            preview=CommandText(request.text, str(request.folder)),
            reason=f"It ran read-only and tried to write {tried}. With a yes it runs again from the start.",
            risks=tuple(dict.fromkeys(("writes", *verdict.risks))),
            timeout=verdict.timeout,
            fixed=True,
        )
        reply = await call.ask(question)
        refused = reply.choice in {"deny", "text"}
        by: dict[str, CommandCaller] = {"nobody": "mode", "hook": "hook"}
        _note(call, request, ("deny" if refused else "allow", by.get(reply.by, "person"), ""))
        if not refused:
            return verdict.profile, ""
        said = f" and said: {reply.text.strip()}" if reply.text.strip() else ""
        return None, f"it ran as a reader; letting it write {tried} was not allowed{said}"


def _mistaken(ready: _ReadyCommand, text: str) -> list[str]:
    """Files that git may call changed only because they are hidden from it."""
    held = ready.held
    if held is None or held.findings is None or held.profile.name != "reading" or "git" not in text:
        return []
    from ba_tui.permissions.sandbox.git_settings import tracked_secrets  # noqa: PLC0415 - only git needs it

    hidden = [path.name for path in tracked_secrets(ready.program.folder) if path in held.findings.secrets]
    return (
        [f"git sees what stands in for {', '.join(hidden[:3])}, which ba hides: it may not be changed"]
        if hidden
        else []
    )


def _copies(ready: _ReadyCommand, text: str) -> str:
    """Files that a command names, also by a pattern, and of which it saw masked copies: what it says of them differs
    though it shows no placeholder."""
    copies = ready.held.copies if ready.held else ()
    if not copies:
        return ""
    words = {word.rsplit("/", 1)[-1] for word in _WORDS.split(text)}
    patterns = [word for word in words if "*" in word or "?" in word]
    names = dict.fromkeys(path.name for path in copies)
    named = [name for name in names if name in words or any(_fits(name, each) for each in patterns)]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return ", ".join(named[:MOST_NAMED]) + more


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (pattern[:1] == "." or name[:1] != ".")


def _unreached(decisions: HostDecisions | None) -> list[str]:
    refused = decisions.refused if decisions else {}
    return [f"{host} was not reached: {why}" for host, why in refused.items()]


def _note(call: Call, request: RunRequest, decided: tuple[Literal["allow", "deny"], CommandCaller, str]) -> None:
    """For the audit: who decided about a second run."""
    word, who, rule = decided
    hash = args_hash(request.args)
    profile = "working" if word == "allow" else ""
    call.branch.emit(Judged(call.id, request.tool.name, word, who, rule, "to write the workspace", hash, profile))


UNCONFINED = CommandRunner()
