"""The policy: deny over ask over allow, then the mode. Every call of every tool is judged here and nowhere else.

Nothing is asked or run here; the guard around a tool does that with the verdict.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Mode
from ba_tui.core.questions import Risk
from ba_tui.core.session import RuleLine
from ba_tui.core.tool import Effect, Tool
from ba_tui.permissions.approvals import Approval, Approvals
from ba_tui.permissions.commands import (
    LONGEST_RULE,
    literals,
    looks_outside,
    named_paths,
    rememberable,
    risks_of,
    risks_of_code,
    without_operators,
)
from ba_tui.permissions.paths import PathRefused, Workspace, is_guarded, is_secret
from ba_tui.permissions.rules import CODE_TOOLS, Rule, Seen, Subject, literal, read_rule, read_rules
from ba_tui.resources import Places

MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan")
REMEMBERED_ASKS = 32
PLAN = (
    "Plan mode: nothing is changed or run now. Read what you need, then present the plan; "
    "the person leaves plan mode when it may be carried out."
)


@dataclass(frozen=True, slots=True)
class Allow:
    """``by`` is the rule that decided, empty when the mode did."""

    by: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """``reason`` is for the model and for the person alike."""

    reason: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """``rule``: the narrowest rule worth remembering; None when nothing should be."""

    reason: str
    rule: str | None
    risks: tuple[Risk, ...] = ()
    by: str = ""


Judgement: TypeAlias = Allow | Deny | Ask


class Policy:
    """Rules of all layers, a mode, and what the person has answered. One for a conversation.

    ``problems`` are rules that could not be read, one line each: they count for nothing, and calls ask instead.
    """

    def __init__(
        self,
        workspace: Workspace,
        rules: Sequence[RuleLine] = (),
        mode: Mode = "default",
        approvals: Approvals | None = None,
        own: Places | None = None,
    ) -> None:
        self.workspace = workspace
        self._rules, problems = read_rules(rules)
        self._approvals = approvals
        self._given: list[Approval] = []
        if approvals:
            self._given, more = approvals.read()
            problems += more
        self.problems = tuple(problems)
        self._own = own
        self._hits: Counter[Rule] = Counter()
        self._asked: deque[tuple[Subject, str]] = deque(maxlen=REMEMBERED_ASKS)
        self._mode: Mode = "default"
        self.set_mode(mode)

    @property
    def mode(self) -> Mode:
        return self._mode

    def set_mode(self, mode: Mode) -> None:
        if mode not in MODES:
            raise UsageError(f"There is no mode {mode!r}.", f"Modes: {', '.join(MODES)}.")
        self._mode = mode

    def rules(self) -> Sequence[RuleLine]:
        everything = [*self._rules, *(given.rule for given in self._given)]
        ranked = sorted(everything, key=lambda rule: ("deny", "ask", "allow").index(rule.verdict))
        return [RuleLine(rule.text, rule.verdict, rule.source, self._hits[rule]) for rule in ranked]

    def judge(self, tool: Tool, args: Mapping[str, Any], cwd: Path) -> Judgement:
        """What happens with a call. ``cwd`` is where a command would run; paths in arguments start from the root."""
        try:
            subject = self._subject(tool, args, cwd)
        except PathRefused as error:
            return Deny(str(error))
        if rule := self._first("deny", subject):
            self._hits[rule] += 1
            return Deny(
                f"Denied by the rule {rule.text} ({rule.source or 'given'}).{self._why(rule, subject)}", rule.text
            )
        if self._mode == "plan" and subject.effect is not Effect.READ:
            return Deny(PLAN)
        if rule := self._first("ask", subject):
            return self._ask(f"the rule {rule.text} ({rule.source or 'given'}) asks", subject, cwd, rule)
        if rule := self._first("allow", subject):
            self._hits[rule] += 1
            return Allow(rule.text)
        return self._by_mode(subject, cwd)

    def remember(self, rule: str, scope: Literal["session", "always"]) -> None:
        """Allow what ``rule`` covers from now on. It also outranks the ask rules that it was the answer to.

        Raises:
            UsageError: it is no rule, or one that can't be kept.
            StorageError: "always" could not be written; it holds for this session all the same.
        """
        read = replace(read_rule(rule, "allow"), source="this session")
        answers = tuple(dict.fromkeys(ask for subject, ask in self._asked if ask and read.covers(subject)))
        self._given.append(Approval(read, answers))
        if scope == "always" and self._approvals:
            self._approvals.add(rule, answers, self.workspace.root)
            self._given[-1] = Approval(replace(read, source=str(self._approvals.path)), answers)

    def _first(self, verdict: str, subject: Subject) -> Rule | None:
        """The rule that decides for ``verdict``; ask rules that the person has answered for such calls do not."""
        rules = [rule for rule in self._rules if rule.verdict == verdict]
        if verdict == "allow":
            rules += [given.rule for given in self._given]
        for rule in rules:
            if not rule.covers(subject):
                continue
            if verdict == "ask" and any(given.answered(rule, subject) for given in self._given):
                continue
            return rule
        return None

    def _why(self, rule: Rule, subject: Subject) -> str:
        if rule.pattern != "@secret":
            return ""
        secret = next(seen for seen in (*subject.paths, *subject.named) if seen.secret)
        return f" {self.workspace.shown(secret.path)} holds secrets, which are neither read nor written."

    def _by_mode(self, subject: Subject, cwd: Path) -> Judgement:
        if subject.outside:
            return self._ask("it is outside the workspace", subject, cwd)
        if subject.effect is Effect.READ:
            return Allow()
        if self._mode == "accept-edits" and subject.effect is Effect.WRITE and subject.paths:
            return Allow()
        doing = {Effect.WRITE: "changes files", Effect.EXECUTE: "runs a command", Effect.NETWORK: "uses the network"}
        return self._ask(f"it {doing[subject.effect]}, and {self._mode} mode asks before that", subject, cwd)

    def _ask(self, reason: str, subject: Subject, cwd: Path, rule: Rule | None = None) -> Ask:
        by = rule.text if rule else ""
        # A call is judged again after the person was asked; that is the same question.
        again = bool(self._asked) and self._asked[-1] == (subject, by)
        if not again:
            self._asked.append((subject, by))
            self._hits.update([rule] if rule else [])
        return Ask(reason[:1].upper() + reason[1:] + ".", _suggested(subject), self._risks(subject, cwd), by)

    def _risks(self, subject: Subject, cwd: Path) -> tuple[Risk, ...]:
        if subject.command is not None:
            code = subject.tool in CODE_TOOLS
            text = literals(subject.command) if code else subject.command
            away = subject.outside or looks_outside(text, self.workspace, cwd)
            return risks_of_code(subject.command, away) if code else risks_of(subject.command, away)
        by_effect: dict[Effect, tuple[Risk, ...]] = {
            Effect.WRITE: ("writes",),
            Effect.NETWORK: ("network",),
            Effect.EXECUTE: ("runs a command",),
        }
        outside: tuple[Risk, ...] = ("outside the workspace",) if subject.outside else ()
        return (*by_effect.get(subject.effect, ()), *outside)

    def _subject(self, tool: Tool, args: Mapping[str, Any], cwd: Path) -> Subject:
        texts = tool.paths(args)
        if (tool.facts.paths or tool.facts.paths_of) and not texts:
            texts = (".",)
        paths = tuple(self._lent(seen, tool) for text in texts for seen in self._both(text))
        command: str | None = None
        named: tuple[Seen, ...] = ()
        if tool.effect is Effect.EXECUTE and tool.facts.target:
            command = str(args.get(tool.facts.target, ""))
            text = without_operators(command) if tool.name in CODE_TOOLS else command
            found = dict.fromkeys(path for pair in named_paths(text, self.workspace, cwd) for path in pair)
            named = tuple(self._seen(path) for path in found)
        return Subject(tool.name, tool.effect, tool.target(args), command, paths, named)

    def _both(self, text: str) -> list[Seen]:
        """A path as written and as its links lead: a rule about either holds."""
        written, resolved = self._seen(self.workspace.named(text)), self._seen(self.workspace.resolve(text))
        if written.path == resolved.path:
            return [resolved]
        # Where the file really lies decides about the workspace; what it is called may only make things stricter.
        strict = written.secret or written.guarded
        return [resolved, replace(written, inside=resolved.inside)] if strict else [resolved]

    def _lent(self, seen: Seen, tool: Tool) -> Seen:
        """What is lent counts as inside for who reads, and for nobody else."""
        if seen.inside or not self.workspace.lends(seen.path):
            return seen
        if tool.effect is not Effect.READ:
            raise PathRefused(f"{self.workspace.shown(seen.path)} is read only.", "Write to a file of the workspace.")
        return replace(seen, inside=True)

    def _seen(self, path: Path) -> Seen:
        places = self.workspace.places(path)
        own = self._own
        secret = is_secret(path) or bool(own and path == own.keys)
        folders = {own.config, own.data, own.state} if own else set[Path]()
        guarded = any(is_guarded(Path(place)) for place in places) if places else is_guarded(path)
        guarded = guarded or any(path.is_relative_to(folder) for folder in folders)
        return Seen(path, self.workspace.relative(path), places, bool(places), secret, guarded)


def _suggested(subject: Subject) -> str | None:
    """The narrowest rule that covers this call and its like."""
    if subject.command is not None:
        return f"{subject.tool}({subject.command})" if rememberable(subject.command) else None
    if len(subject.paths) > 1:
        return None
    if subject.paths:
        seen = subject.paths[0]
        about = literal(seen.relative if seen.relative is not None else seen.path.as_posix())
    else:
        about = literal(subject.target)
    if not about:
        return subject.tool if subject.effect is not Effect.NETWORK else None
    text = f"{subject.tool}({about})"
    return text if len(about) <= LONGEST_RULE and text.isprintable() and about == about.strip() else None
