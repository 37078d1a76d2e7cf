"""Runs commands in their allowed profile, and reviews afterwards how they changed protected files.

``permissions/sandbox`` confines them; consent to leave the sandbox is judged before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.effects import WORKING, Profile
from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.events import PERSON, Judged, Notice
from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import CommandText, Diff, Diffs, ToolResult, failure
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.values import frozen, late
from ba_tui.permissions.answers import NETWORK
from ba_tui.permissions.conditions import domain_of
from ba_tui.permissions.paths import is_secret
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.confinement import Sandbox, SandboxConfinement
from ba_tui.permissions.sandbox.git_settings import git_environment, skipped_hooks, tracked_secrets
from ba_tui.permissions.sandbox.protected_watch import ProtectedChange, ProtectedWatch, WatchedRun
from ba_tui.permissions.session import SessionPermissions
from ba_tui.permissions.trust.session_writes import SessionWrites
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement, judged_call
from ba_tui.processes.values import Confinement, Program
from ba_tui.settings import Settings
from ba_tui.skills.content import SkillFolders
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.guards.checkpoint import NoRecord, recorded
from ba_tui.tools.shells import ShellResult, Shells, Work

if TYPE_CHECKING:
    from ba_tui.tools.addresses import WebAddress
    from ba_tui.tools.egress_proxy import HostDecisions, NetworkAccess

# Few sessions need the proxy.
command_proxy, network_access = (
    late(f"ba_tui.tools.egress_proxy:{name}") for name in ("command_proxy", "network_access")
)

# The review of protected files. While a change is undecided, no further command runs without a question.

MOST_SHOWN = 20
NAMED_FILES = 4
COMMAND_CHARS = 60
NO_TEXT = "(a link, or too large to be shown)\n"
HIDDEN = "(not shown: it may hold secrets)\n"
WHY = "Git, shells, editors and other programs run code from such files, or models follow them."


@frozen
class ProtectedReview:
    """Asks the user about protected files that commands changed. ``watch``: None if nothing is watched. ``asks``:
    whether to ask, or only to report. ``accepted`` is called with the files that the user accepted; blocks."""

    watch: ProtectedWatch | None = None
    asks: Callable[[], bool] = lambda: True
    accepted: Callable[[Iterable[Path]], None] = lambda paths: None

    async def settle(self, call: Call) -> str:
        """Ask about the changes so far. Return why nothing may run without a question; empty if all is decided."""
        watch = self.watch
        if watch is None or call.branch.name == PERSON:
            return ""
        if watch.active:
            await asyncio.to_thread(watch.check)
        notes = await self.notes(call)
        if not notes or not await asyncio.to_thread(lambda: watch.pending):
            return ""
        return f"{notes[0]}. Nothing runs unasked until the user has decided about that."

    async def notes(self, call: Call) -> list[str]:
        """Return notes for the model on changes that the user left undecided."""
        # Changes by the user's own command are asked about before the model's next command.
        watch = self.watch if call.branch.name != PERSON else None
        changes = await asyncio.to_thread(lambda: watch.pending) if watch else ()
        if watch is None or not changes:
            return []
        what = f"`{one_line(changes[0].by, COMMAND_CHARS)}` {_did(watch, changes)}"
        if not self.asks():
            await asyncio.to_thread(watch.keep, changes)
            call.branch.emit(Notice(f"{what}.", "warning", WHY))
            return []
        reply = await call.ask(_question(f"{what}. {WHY}", watch, changes, call))
        match reply.text.split("\n")[0] if reply.choice == "text" else "":
            case "Keep them":
                await asyncio.to_thread(watch.keep, changes)
                if len(changes) <= MOST_SHOWN:
                    await self._accept(changes, call)
                return []
            case "Set them aside":
                return await self._set_aside(watch, changes, call)
            case _:
                hint = "ba asks before every command until you keep or remove them."
                call.branch.emit(Notice(f"{what}. {WHY}", "warning", hint))
                return [f"{what}, which decide what other programs run, and the user has not agreed to that"]

    async def _accept(self, changes: Sequence[ProtectedChange], call: Call) -> None:
        """Let models read the instruction files among ``changes``: the user has seen the diff."""
        try:
            await asyncio.to_thread(self.accepted, [change.path for change in changes if change.after is not None])
        except StorageError as error:
            call.branch.emit(Notice(str(error), "warning", error.hint))

    @staticmethod
    async def _set_aside(watch: ProtectedWatch, changes: Sequence[ProtectedChange], call: Call) -> list[str]:
        names = ", ".join(watch.shown(change.path) for change in changes)
        try:
            folder = await asyncio.to_thread(watch.set_aside, changes)
        except OSError as error:
            reason = error.strerror or error
            call.branch.emit(Notice(f"{names} could not be set aside: {reason}.", "warning", "Remove them yourself."))
            return [f"{names} could not be set aside"]
        call.branch.emit(Notice(f"{names}: set aside in {folder}."))
        return [f"the user had {names} taken back"]


def _question(text: str, watch: ProtectedWatch, changes: Sequence[ProtectedChange], call: Call) -> Question:
    return Question(
        "choice",
        text,
        call_id=call.id,
        preview=Diffs(tuple(_diff(watch, change) for change in changes[:MOST_SHOWN])),
        options=(
            Option("Keep them", "They are fine, or you made them yourself."),
            Option("Set them aside", "New files move to a folder of ba; changed files get their old content back."),
        ),
    )


def _did(watch: ProtectedWatch, changes: Sequence[ProtectedChange]) -> str:
    """Return the changes in words: ``created .envrc and changed .npmrc``."""
    said: list[str] = []
    for word, chosen in (
        ("created", [change for change in changes if change.new]),
        ("changed", [change for change in changes if not change.new and change.after is not None]),
        ("removed", [change for change in changes if not change.new and change.after is None]),
    ):
        names = list(dict.fromkeys(watch.shown(change.outermost or change.path) for change in chosen))
        if names:
            more = f" and {len(names) - NAMED_FILES} more" if len(names) > NAMED_FILES else ""
            said.append(f"{word} {', '.join(names[:NAMED_FILES])}{more}")
    return " and ".join(said)


def _diff(watch: ProtectedWatch, change: ProtectedChange) -> Diff:
    if is_secret(change.path):
        # The session stores what is shown.
        return Diff(watch.shown(change.path), None, HIDDEN)
    before = None if change.before is None else change.before.decode("utf-8", "replace")
    after = NO_TEXT if change.after is None and change.new else (change.after or b"").decode("utf-8", "replace")
    return Diff(watch.shown(change.path), before, after)


CommandJudge: TypeAlias = Callable[[JudgedCall], Judgement]
CommandCaller: TypeAlias = Literal["rule", "mode", "person", "hook"]
WIDER = "Run it again with write access to the workspace?"
MARK = "masked-by-ba"
"""Prefix of placeholders: see permissions/secrets/masking.py, which most sessions do not load here."""
MASKED = f"{MARK} and x stand for secrets of the same length; commands.read in the user's settings shows a file"
COPIED = " for this command: checksums and distinct values are not those on the disk"
UNWATCHED = ProtectedReview()
_WORDS = regex(r"[\s\"'`;|&<>()=:]+")
MOST_NAMED = 5
"""Most files that a note names."""
OUTSIDE_HINT = "if it needs that, call it with outside: true, and the user is asked"
OWN_HINT = "if it needs that, run it in another terminal, or allow it by a rule such as outside(COMMAND *)"


@frozen
class RunRequest:
    """A call that runs the text in its ``argument``. ``make`` returns the program for such a text."""

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
    """A command ready to start. ``run``: its watch on protected files; ``decisions``: on hosts that it may reach."""

    program: Program
    held: SandboxConfinement | None = None
    run: WatchedRun | None = None
    decisions: HostDecisions | None = None


@frozen
class CommandRunner:
    """Runs the commands of a conversation. ``sandbox``: None if commands are not confined. ``judge`` decides on
    further programs, such as installers; ``widen``, whether a reading command may write after all."""

    sandbox: Sandbox | None = None
    judge: CommandJudge | None = None
    network: Callable[[], NetworkAccess] | None = None
    """Which hosts confined commands may reach; None: none."""
    widen: CommandJudge | None = None
    review: ProtectedReview = UNWATCHED
    hooks: bool | None = None
    """Whether hooks of a repository may run, except in reading commands; None: git runs without ba's variables."""
    skills: SkillFolders = field(default_factory=SkillFolders)
    """The folders of active skills, which commands may read and find in variables."""
    writes: SessionWrites | None = None
    """Records written files that run code or instruct models; None to record nothing."""

    @property
    def watch(self) -> ProtectedWatch | None:
        """The watch on protected files; None if nothing is watched."""
        return self.review.watch

    def undecided(self) -> bool:
        """Return whether changes of protected files are undecided. Blocks."""
        return bool(self.watch and self.watch.pending)

    async def confine(self, program: Program, profile: Profile) -> Program:
        """Return ``program`` confined by ``profile`` where possible. Raises ToolFailure if a required sandbox is
        missing."""
        return replace(program, confinement=await self._confinement(program, profile))

    async def _confinement(self, program: Program, profile: Profile) -> SandboxConfinement | None:
        if self.sandbox is None:
            return None
        try:
            return await asyncio.to_thread(self.sandbox.confine, profile, program.readable)
        except BaError as error:
            raise ToolFailure("dependency_error", str(error), error.hint) from error
        except OSError as error:
            reason = error.strerror or error
            raise ToolFailure("resource_error", f"The sandbox could not be prepared: {reason}.") from error

    def confine_worker(self) -> Confinement | None:
        """Return the confinement for a worker of a project's tools, which may change files at any time from then on.
        Blocks.

        Raises:
            NotConfined: a required sandbox is missing. StorageError: its writes can't be recorded.
        """
        self.record("a tool of this project", held=True)
        if self.watch:
            self.watch.begin(WatchedRun("a tool of this project", WORKING, running=lambda: True))
        return self.sandbox.confine(WORKING) if self.sandbox else None

    def record(self, by: str, *, held: bool) -> None:
        """Note that ``by``, a server or a worker, may write files at any time. ``held``: it runs in a sandbox.
        Blocks. Raises StorageError."""
        held = held and self.sandbox is not None and self.sandbox.holds()
        if self.writes:
            self.writes.start(by, held=held)

    def _with_egress(self, ready: _ReadyCommand, text: str, call: Call, *, attended: bool) -> _ReadyCommand:
        """Return ``ready`` with a proxy to allowed hosts if its network is off and it may do more than read.
        ``attended``: the call waits for the command, so the user can be asked."""
        held, program = ready.held, ready.program
        if self.network is None or held is None or not held.walled or held.profile.name == "reading":
            return ready
        preview = CommandText(text, str(program.folder))
        egress, decisions = command_proxy(self.network(), call, preview, attended=attended)
        program = replace(program, environment={**program.environment, **egress.environment}, egress=egress)
        return replace(ready, program=program, decisions=decisions)

    async def run(self, request: RunRequest, shells: Shells, call: Call) -> tuple[ShellResult, list[str]]:
        """Run a command; return how it ended, and notes on where it ran.

        Raises:
            OSError: it could not be started. ToolFailure: a required sandbox is missing.
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
        except NoRecord as error:
            return outcome, [*notes, f"it was not run again: {error}"]
        return outcome, [f"this is its second run, with write access: as a reader it tried to write {tried}", *notes]

    async def start(self, request: RunRequest, shells: Shells, call: Call) -> Work:
        """Run a command in the background. Raises as ``run`` does, and ToolFailure if too many run."""
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
        guarded = profile.git and "GIT_CONFIG_COUNT" in program.environment
        if guarded and (hooks := await asyncio.to_thread(skipped_hooks, program.folder, request.text)):
            notes.append(f"git ran without the hooks {hooks}; the setting commands.git_hooks allows them")
        return outcome, [*notes, *await self.review.notes(call)]

    async def _label(self, request: RunRequest) -> str:
        """Return the command for later notes, without full paths of skills."""
        return await asyncio.to_thread(self.skills.named, request.text) if "/" in request.text else request.text

    async def _begun(self, request: RunRequest, profile: Profile, call: Call, *, attended: bool) -> _ReadyCommand:
        program, lent = request.make(request.text), await asyncio.to_thread(self.skills.variables)
        folders = dict.fromkeys(map(Path, lent.values()))
        program = replace(program, environment={**lent, **program.environment}, readable=(*program.readable, *folders))
        held = await self._confinement(program, profile)
        program = replace(program, confinement=held)
        guarded = held is not None and held.guarded
        if self.hooks is not None and profile.name != "outside":
            known, judged = program.environment, replace(profile, git=False) if self.hooks else profile
            safe = await asyncio.to_thread(git_environment, program.folder, request.text, judged, known, held=guarded)
            program = replace(program, environment={**known, **safe})
        ready = self._with_egress(_ReadyCommand(program, held), request.text, call, attended=attended)
        if self.watch is None or (profile.name == "reading" and (held is None or guarded)):
            return ready
        run = WatchedRun(request.text, profile, guarded)
        await asyncio.to_thread(self.watch.begin, run, held.findings if held else None)
        return replace(ready, run=run)

    async def _ended(self, run: WatchedRun | None) -> None:
        if self.watch and run:
            await asyncio.to_thread(self.watch.end, run)

    def _blame(self, outcome: ShellResult, ready: _ReadyCommand, profile: Profile, call: Call) -> list[str]:
        """Return notes on how the sandbox may have caused a failure. They are only for the model."""
        process = outcome.job.process
        if self.sandbox is None or not process.confined or outcome.moved or outcome.timed_out:
            return []
        findings = ready.held.findings if ready.held else None
        linked = findings.linked if findings else ()
        return [*self._veiled(profile, self.sandbox), *self._failed(outcome, profile, call, self.sandbox, linked)]

    @staticmethod
    def _veiled(profile: Profile, sandbox: Sandbox) -> list[str]:
        """Return notes on files that a command saw masked, so that its output is not mistaken for the whole."""
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
            why = f"permission rules are about reading {shown}{more}"
            notes.append(f"{why}, so the command did not see what is in there")
        return notes

    @staticmethod
    def _failed(
        outcome: ShellResult, profile: Profile, call: Call, sandbox: Sandbox, linked: Collection[Path]
    ) -> list[str]:
        process = outcome.job.process
        if process.program.exit_code is None and not process.program.started:
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
        """Return what a reading command tried to write, by its own output; empty if nothing."""
        process = outcome.job.process
        if profile.name != "reading" or self.sandbox is None or not process.confined or not outcome.job.exit_code:
            return ""
        return self.sandbox.refused_write(process.output.text())

    async def _widened(self, request: RunRequest, tried: str, call: Call) -> tuple[Profile | None, str]:
        """Return the profile for a second run, or None and the reason."""
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
    """Return a note on files that git may report as changed only because they are hidden."""
    held = ready.held
    if held is None or held.findings is None or held.profile.name != "reading" or "git" not in text:
        return []
    hidden = [path.name for path in tracked_secrets(ready.program.folder) if path in held.findings.secrets]
    names = ", ".join(hidden[:3])
    return [f"git sees substitutes for {names}, which ba hides: the files may be unchanged"] if names else []


def _copies(ready: _ReadyCommand, text: str) -> str:
    """Return a note on files that a command names, also by a pattern, and of which it saw masked copies."""
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
    """Record for the audit who decided on a second run."""
    word, who, rule = decided
    hash = args_hash(request.args)
    profile = "working" if word == "allow" else ""
    call.branch.emit(Judged(call.id, request.tool.name, word, who, rule, "to write the workspace", hash, profile))


UNCONFINED = CommandRunner()

# Rules for what commands do outside their sandbox: use the network, reach a host.
UNLISTED = "No rule lets sandboxed commands reach this host."
NETWORKED = "It would run with network access."


def by_rule(policy: Policy, request: JudgedCall) -> Judgement:
    """Judge a program with network access: a rule may allow it, but not a mode that relies on the sandbox."""
    verdict = policy.judge(request)
    if isinstance(verdict, Allow) and not verdict.by and policy.mode != "bypass":
        return Ask(NETWORKED, None, ("runs a command", "network"))
    return verdict


async def _only_judged(args: Mapping[str, Any], call: Call) -> ToolResult:
    return failure("not_found", "Hosts are reached by commands, not by a tool.")


REACHING = Tool(
    NETWORK, "What a confined command reaches.", {}, _only_judged, Effect.NETWORK, facts=ToolFacts(target="url")
)


def judge_host(policy: Policy, address: WebAddress, call: Call) -> Judgement:
    """Judge whether a confined command may reach ``address``. A mode that relies on the sandbox does not allow it,
    so the user is asked; the user is also asked about unusual ports, even if a rule allows the host."""
    request = judged_call(REACHING, {"url": f"{address.origin}/"}, policy.workspace.root, call)
    verdict = policy.judge(replace(request, ceiling=request.ceiling.of_any_tool()))
    if policy.mode == "bypass" or isinstance(verdict, Deny):
        return verdict
    if address.port not in (80, 443):
        return Ask(f"Port {address.port} is not a web port (80 or 443).", None, ("network",))
    if isinstance(verdict, Ask) or verdict.by:
        return verdict
    return Ask(UNLISTED, f"{NETWORK}({domain_of(address.origin)})", ("network",))


def session_runner(
    settings: Settings, permissions: SessionPermissions, skills: SkillFolders, writes: SessionWrites
) -> CommandRunner:
    """Return the runner for a conversation's commands; ``writes`` records what they write."""
    policy = permissions.policy
    review = ProtectedReview(permissions.watch(), lambda: policy.mode != "bypass", writes.accept)

    def network() -> NetworkAccess:
        return network_access(partial(judge_host, policy), policy.remember, settings.web.allow_private)

    judge, hooks = partial(by_rule, policy), settings.commands.git_hooks
    return CommandRunner(permissions.sandbox, judge, network, policy.judge, review, hooks, skills, writes)
