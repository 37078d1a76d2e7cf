"""The policy: deny over ask over allow, then the mode. It judges every call of every tool.

It neither asks nor runs anything; the permission guard of a tool acts on the verdict.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ba_tui.core.effects import OUTSIDE, READING, WORKING, ProfileStep
from ba_tui.core.errors import UsageError
from ba_tui.core.events import PERSON, Mode
from ba_tui.core.ports.permissions import RuleLine, RuleScope, RuleVerdict, split_rules
from ba_tui.core.tool import Effect, Tool
from ba_tui.permissions.answers import PersonRules, ProjectApprovals, add_hits, read_hits
from ba_tui.permissions.conditions import terms_text
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.permissions.rule import (
    BROAD,
    CODE_TOOLS,
    COMMAND_TOOLS,
    OUTER,
    SHELL_TOOLS,
    Rule,
    Subject,
    read_rule,
    read_rules,
)
from ba_tui.permissions.subjects import (
    MCP,
    Subjects,
    for_session,
    judging,
    key_of,
    named,
    risks,
    secret_named,
    suggested,
)
from ba_tui.permissions.verdicts import (
    BYPASS,
    MODES,
    PLAN,
    PLANNED,
    RESTRICTED,
    Allow,
    Ask,
    BoundLevel,
    Bounds,
    Deny,
    JudgedCall,
    Judgement,
    ModeChanges,
    as_reader,
)

if TYPE_CHECKING:
    from ba_tui.permissions.command_judging import FileCover, ProfileChoice

REMEMBERED_ASKS = 32
LEAVING = "it would run outside the sandbox, with all your permissions"
UNBOUND = Bounds()


class Policy:
    """Rules of all layers, a mode, and the user's answers. One per conversation.

    ``problems``: one line per unreadable rule. An unreadable strict rule covers every call of its tool.
    """

    def __init__(
        self,
        workspace: Workspace,
        rules: Sequence[RuleLine] = (),
        mode: Mode = "default",
        approvals: ProjectApprovals | None = None,
        bounds: Bounds = UNBOUND,
    ) -> None:
        self.workspace = workspace
        self.bounds = bounds
        self._subjects = Subjects(workspace, bounds.own, bounds.confined, bounds.unheld)
        read, problems = read_rules(rules)
        offered = [rule for rule in read if rule.layer == "project" and rule.verdict == "allow"]
        self._rules = [rule for rule in read if rule not in offered]
        self._given = PersonRules(approvals, bounds.own, offered)
        self.problems = (*problems, *self._given.problems)
        self._hits: Counter[Rule] = Counter()
        self._asked: deque[tuple[Subject, str]] = deque(maxlen=REMEMBERED_ASKS)
        self.mode_changes = ModeChanges(bounds.quiet)
        self._mode: Mode = "default"
        # A mode set for other folders is no error where only reading is allowed.
        self.set_mode(mode if not bounds.restricted or mode in bounds.modes() else "default")

    @property
    def mode(self) -> Mode:
        return self._mode

    @property
    def level(self) -> BoundLevel:
        return "restricted" if self.bounds.restricted else "admin" if self._mode == BYPASS else "default"

    def modes(self) -> Sequence[Mode]:
        return self.bounds.modes()

    def set_mode(self, mode: Mode) -> None:
        if mode not in self.modes():
            if mode == BYPASS and not self.bounds.restricted:
                raise UsageError(
                    "Mode bypass can only be chosen at the start.", "Start ba with --permission-mode bypass."
                )
            known = mode in MODES or mode == BYPASS
            what = (
                f"Mode {mode} is not available here: {RESTRICTED.lower()}" if known else f"There is no mode {mode!r}."
            )
            raise UsageError(what, f"Modes: {', '.join(self.modes())}.")
        self._mode = mode
        self.mode_changes.tell()

    def rules(self) -> Sequence[RuleLine]:
        everything = [*((rule, False) for rule in self._rules), *self._given.all()]
        ranked = sorted(everything, key=lambda each: ("deny", "ask", "allow").index(each[0].verdict))
        before = read_hits(self.bounds.hits) if self.bounds.hits else Counter[str]()
        return [self._line(rule, before[key_of(rule)] + self._hits[rule], waits) for rule, waits in ranked]

    def judge(self, request: JudgedCall) -> Judgement:
        """Return the verdict on a call."""
        try:
            subject = self._subjects.of(request.tool, request.args, request.cwd)
        except PathRefused as error:
            return Deny(str(error), malformed=error.malformed, hint=error.hint)
        if rule := self._first("deny", subject):
            self._hits[rule] += 1
            return Deny(f"Denied by the rule {named(rule)}.{secret_named(rule, subject, self.workspace)}", rule.text)
        if request.agent == PERSON:
            return self._persons_own(subject, request.cwd)
        if reason := self._forbidden(request, subject):
            return Deny(reason)
        verdict = self._judged(request, subject)
        return verdict if subject.effect in request.ceiling.effects else as_reader(verdict)

    def denies_reading(self, path: Path) -> bool:
        """Return whether a rule denies reading the file at ``path``."""
        return bool(self._first("deny", Subject("read_file", Effect.READ, paths=(self._subjects.seen(path),))))

    def _persons_own(self, subject: Subject, cwd: Path) -> Judgement:
        """Return the verdict on a command that the user typed: nothing asks, and only a rule denies it."""
        if subject.tool not in SHELL_TOOLS:
            return Allow()
        if outer := self._leaving(subject):
            self._hits[outer] += 1
            return Allow(outer.text, OUTSIDE)
        return Allow("", judging().hold(subject, self._allows(subject), self._stored(subject, cwd)).approved)

    def _judged(self, request: JudgedCall, subject: Subject) -> Judgement:
        """Return the verdict of rules, mode and answers on a call that nothing forbids."""
        tool, args, cwd, tried = request.tool, request.args, request.cwd, request.tried
        shell = subject.tool in SHELL_TOOLS and subject.command is not None
        held, approved = None, READING if subject.reads else WORKING
        by: Rule | None = None
        if shell:
            allows = self._allows(subject)
            covered = judging().cover(subject, allows, self._files())
            lack = covered.lacks[0].why if covered.lacks else ""
            stored = self._stored(subject, cwd)
            held = judging().hold(subject, allows, stored, covered.masked)
            approved = held.approved
            if lack and stored:
                lack = f"{lack.rstrip('.')}; {judging().seen_by_git(stored)}"
            if tried and not lack:
                lack = f"`{judging().program(subject.commands[-1])}` tried to write {tried}"
            subject = replace(subject, lack=lack, offer=judging().offered(subject, covered.lacks))
            by = covered.by[0] if covered.by else None
        elif subject.tool in CODE_TOOLS and self.bounds.walled():
            grave = "destructive" in risks(subject, self.workspace, cwd)
            subject = replace(subject, stays=not grave and self._stays(subject, cwd))
        if args.get(OUTER) is True and subject.tool in COMMAND_TOOLS and self.bounds.confined():
            return self._outside(tool, subject, cwd)
        if self._mode == BYPASS and not subject.asks:
            return Allow("", approved)
        if asking := self._asking(subject):
            waits = self._patience(asking, tool, subject, cwd)
            asked = self._ask(f"the rule {named(asking[0])} asks", subject, cwd, asking[0])
            return replace(asked, profile=approved, **waits)
        if shell and request.ceiling.outside and (outer := self._leaving(subject)):
            self._hits[outer] += 1
            return Allow(outer.text, OUTSIDE)
        rule = (by if not subject.lack else None) if subject.commands or subject.lack else self._first("allow", subject)
        by_tool = rule.tool if rule else ""
        if not (rule and rule.narrow) and (why := self.bounds.leak(self._mode, tool, args, by_tool)):
            return replace(self._ask(why, subject, cwd), profile=approved)
        if held and not tried and (apart := self._apart(request, subject, held)):
            return apart
        if held and not subject.lack and (why := self._unheld(held, subject, cwd)):
            return replace(self._ask(why, subject, cwd), profile=approved)
        if rule:
            self._hits[rule] += 1
            return Allow(rule.text, held.unasked if held else approved)
        verdict = self._by_mode(subject, cwd)
        if isinstance(verdict, Allow):
            return replace(verdict, profile=held.unasked if held and not subject.lack else approved)
        return replace(verdict, profile=approved) if isinstance(verdict, Ask) else verdict

    def remember(self, rule: str, scope: Literal["session", "always"]) -> None:
        """Allow from now on what the rules in ``rule`` cover, one per line.

        Each also outranks the ask rules that it answers, unless it is broad. "always" writes a file: call it off the
        event loop.

        Raises:
            UsageError: it is no rule, or one that can't be kept.
            StorageError: "always" could not be written; the rule still applies to this session.
        """
        for read in [read_rule(text, "allow") for text in split_rules(rule)]:
            asked = () if read.pattern in BROAD else tuple(self._asked)
            answers = tuple(dict.fromkeys(ask for subject, ask in asked if ask and read.covers(subject)))
            self._given.add(read, "project" if scope == "always" else "session", self.workspace.root, answers)

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        """Add one of the user's rules; an allow rule outranks no ask rule. Raises as ``remember``."""
        return self._line(self._given.add(read_rule(rule, verdict), scope, self.workspace.root))

    def remove(self, rule: RuleLine) -> None:
        self._given.remove(rule)

    def grant(self, rules: Callable[[], Sequence[Rule]]) -> None:
        """Allow what ``rules`` covers, as long as it returns a rule."""
        self._given.grants.append(rules)

    def save_hits(self) -> None:
        """Add the hits counted since the last call to the project's counts. Writes a file; raises nothing."""
        counted, self._hits = self._hits, Counter()
        if self.bounds.hits:
            add_hits(self.bounds.hits, {key_of(rule): count for rule, count in counted.items()})

    def _line(self, rule: Rule, hits: int = 0, waits: bool = False) -> RuleLine:
        terms = terms_text(rule.terms)
        return RuleLine(rule.text, rule.verdict, rule.source, hits, rule.layer, terms, waits)

    def _first(self, verdict: RuleVerdict, subject: Subject) -> Rule | None:
        """Return the first rule of ``verdict`` that covers the call."""
        mine = [rule for rule in self._rules if rule.verdict == verdict]
        return next((rule for rule in (*mine, *self._given.rules(verdict)) if rule.covers(subject)), None)

    def _asking(self, subject: Subject) -> list[Rule]:
        """Return the ask rules that cover a call, except those that the user has answered for such calls."""
        rules = [rule for rule in self._rules if rule.verdict == "ask"] + self._given.rules("ask")
        return [rule for rule in rules if rule.covers(subject) and not self._given.answered(rule, subject)]

    def _patience(self, asking: Sequence[Rule], tool: Tool, subject: Subject, cwd: Path) -> dict[str, Any]:
        """Return how long the question waits.

        No answer means yes only if every asking rule says so, and never for irreversible or unknown effects, or for
        calls that leave the workspace.
        """
        waits = [rule.terms.timeout for rule in asking if rule.terms.timeout is not None]
        if not waits:
            return {}
        after = {rule.terms.on_timeout for rule in asking if rule.terms.timeout is not None}
        on = after.pop() if len(after) == 1 else "deny"
        if on == "allow":
            grave = {"destructive", "outside the workspace", "shares a secret", "writes to memory"} & set(
                risks(subject, self.workspace, cwd)
            )
            sure = not grave and not subject.unsure and len(waits) == len(asking)
            on = on if sure and not self.bounds.leak(self._mode, tool, subject.args, "") else "deny"
        return {"timeout": min(waits), "on_timeout": on}

    def _outside(self, tool: Tool, subject: Subject, cwd: Path) -> Judgement:
        """Return the verdict on a call that is to run outside the sandbox: only a rule about that allows it."""
        outer = replace(subject, tool=OUTER)
        if rule := self._first("deny", outer):
            self._hits[rule] += 1
            return Deny(f"Running it outside the sandbox is denied by the rule {named(rule)}.", rule.text)
        if self._mode == BYPASS:
            return Allow("", OUTSIDE)
        asking = [*self._asking(subject), *(rule for rule in self._asking(outer) if rule.tool == OUTER)]
        leaving = self._leaving(subject)
        if leaving and not asking:
            self._hits[leaving] += 1
            return Allow(leaving.text, OUTSIDE)
        waits = self._patience(asking, tool, subject, cwd) if asking else {}
        offer = None if asking else judging().outer_offer(subject)
        asked = self._ask(LEAVING, subject, cwd, asking[0] if asking else None)
        grave = tuple(dict.fromkeys((*asked.risks, "outside the sandbox")))
        return replace(asked, rule=offer, risks=grave, profile=OUTSIDE, **{**waits, "on_timeout": "deny"})

    def _leaving(self, subject: Subject) -> Rule | None:
        """Return the rule by which a command runs outside the sandbox; it must be about that, and cover each part."""
        rules = [rule for rule in (*self._rules, *self._given.rules("allow")) if rule.verdict == "allow"]
        rules = [rule for rule in rules if rule.tool == OUTER and rule.terms.hold(subject.args, doubt=False)]
        outer = replace(subject, tool=OUTER)
        if not rules or self._first("deny", outer) or self._asking(outer) or not self.bounds.confined():
            return None
        return judging().leave(subject, rules)

    def _forbidden(self, request: JudgedCall, subject: Subject) -> str:
        """Return why the call is refused whatever rules say (plan mode, the folder, the agent's ceiling); empty if it
        is not.

        A command that only reads counts as reading.
        """
        ceiling, effect = request.ceiling, subject.effect
        if not ceiling.may_call(request.tool.name):
            return f"The agent {request.agent} may not use {request.tool.name}."
        if not ceiling.outside and request.args.get(OUTER) is True and subject.tool in COMMAND_TOOLS:
            return f"The agent {request.agent} may run nothing outside the sandbox."
        if self.bounds.restricted and effect is not Effect.READ:
            return self.bounds.restricted
        planned = self._mode == "plan" and effect is not Effect.READ
        if effect in ceiling.effects and not planned:
            return ""
        if Effect.READ in ceiling.effects and (subject.reads or (not request.tried and self._only_reads(subject))):
            return ""
        if planned:
            return PLANNED.get(request.tool.facts.category, PLAN)
        return f"The agent {request.agent} is limited to: {', '.join(sorted(ceiling.effects))}."

    def _apart(self, request: JudgedCall, subject: Subject, held: ProfileChoice) -> Allow | None:
        """Return a list of commands as separate steps, if each may run without asking but not all together."""
        tool, args, cwd = request.tool, request.args, request.cwd
        if args.get("background") or not (held.why or (subject.lack and judging().alone(subject))):
            return None
        steps, by = list[ProfileStep](), ""
        for link in judging().links(subject.command or ""):
            verdict = self.judge(replace(request, args={**args, tool.facts.target: link.text}, cwd=cwd))
            if not isinstance(verdict, Allow) or verdict.profile == OUTSIDE:
                return None
            by = by or verdict.by
            steps.append(ProfileStep(link.text, verdict.profile, link.joined))
            if link.text.split()[0] == "cd":
                moved = judging().folder_after(link.text, cwd)
                if moved is None or not self.workspace.contains(moved):
                    return None
                cwd = moved
        return Allow(by, WORKING, tuple(steps)) if steps else None

    def _unheld(self, held: ProfileChoice, subject: Subject, cwd: Path) -> str:
        """Return why a command that is otherwise allowed asks all the same; empty if it need not."""
        if held.exact:
            return ""
        why = self.bounds.unheld() if held.reads and not held.unasked.plain else ""
        if why:
            return f"it seems to only read, but nothing keeps it from writing: {why}"
        if held.why:
            return held.why
        return judging().exposed(subject.commands, cwd)

    def _stored(self, subject: Subject, cwd: Path) -> tuple[Path, ...]:
        """Return files with secrets that a git call would report as changed if the sandbox hid them."""
        return judging().stored_secrets(subject.commands, cwd) if subject.commands and self.bounds.confined() else ()

    def _by_mode(self, subject: Subject, cwd: Path) -> Judgement:
        why = self._doubt(subject, cwd)
        if not why:
            return Allow()
        if waiting := self._given.waiting(subject):
            why = f"{why}; the project's rule {named(waiting)} would allow it once you confirm it"
            return replace(self._ask(why, subject, cwd), rule=waiting.text, by=waiting.text)
        # Offer broad rules only for questions of the mode.
        return replace(self._ask(why, subject, cwd), session_rule=for_session(subject))

    def _doubt(self, subject: Subject, cwd: Path) -> str:
        """Return why the mode asks; empty if it allows the call."""
        if subject.asks or subject.unheld or subject.outside:
            return subject.asks or subject.unheld or "the path is outside the workspace"
        if subject.effect is Effect.READ or subject.reads or (subject.commands and not subject.lack):
            return ""
        if "unknown" in subject.kinds:
            return "this SQL can't be checked"
        edits = self._mode == "accept-edits" or subject.copied
        if edits and subject.effect is Effect.WRITE and subject.paths and not subject.kinds:
            return ""
        if self._mode == "auto" and (subject.effect is not Effect.EXECUTE or self._stays(subject, cwd)):
            return judging().exposed(subject.commands, cwd) if subject.commands else ""
        if subject.lack:
            return f"{subject.lack.rstrip('.')}{self._because()}"
        change = "changes to data need" if subject.kinds else "edits need" if subject.paths else "changes need"
        kinds = {Effect.WRITE: change, Effect.EXECUTE: "running code needs", Effect.NETWORK: "network access needs"}
        needs = "tools of MCP servers need" if subject.tool.startswith(MCP) else kinds[subject.effect]
        return f"{needs} approval in {self._mode} mode{self._because()}"

    def _because(self) -> str:
        if self._mode != "auto":
            return ""
        return "; it may reach outside this folder" if self.bounds.confined() else "; there is no sandbox"

    def _stays(self, subject: Subject, cwd: Path) -> bool:
        """Return whether a sandbox confines the command and its text needs nothing beyond the workspace."""
        if not (subject.confined or subject.command is not None) or not self.bounds.confined():
            return False
        further = {"network", "outside the workspace", "shares a secret"} & set(risks(subject, self.workspace, cwd))
        if further or any(seen.guarded for seen in subject.named) or judging().alone(subject):
            return False
        return not self._stored(subject, cwd)

    def _ask(self, reason: str, subject: Subject, cwd: Path, rule: Rule | None = None) -> Ask:
        by = rule.text if rule else ""
        # A call is judged again after the user was asked: count it as the same question.
        again = bool(self._asked) and self._asked[-1] == (subject, by)
        if not again:
            self._asked.append((subject, by))
            self._hits.update([rule] if rule else [])
        reason = f"{reason[:1].upper()}{reason[1:]}."
        return Ask(reason, suggested(subject), risks(subject, self.workspace, cwd), by, self.bounds.timeout)

    def _allows(self, subject: Subject) -> list[Rule]:
        rules = [rule for rule in (*self._rules, *self._given.rules("allow")) if rule.verdict == "allow"]
        return [rule for rule in rules if rule.meant(subject)]

    def _only_reads(self, subject: Subject) -> bool:
        """Return whether the command would only read if a sandbox confined it; without one it asks."""
        return bool(subject.commands) and not judging().cover(subject, (), self._files(str)).lacks

    def _files(self, unheld: Callable[[], str] | None = None) -> FileCover:
        strict = (*self._rules, *self._given.rules("deny"), *self._given.rules("ask"))
        see, unheld = self._subjects.both, unheld or self.bounds.unheld
        return judging().FileCover(self.workspace, strict, lambda call: bool(self._first("allow", call)), see, unheld)
