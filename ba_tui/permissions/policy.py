"""The policy: deny over ask over allow, then the mode. Every call of every tool is judged here and nowhere else.

Nothing is asked or run here; the guard around a tool does that with the verdict.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Mode
from ba_tui.core.questions import Risk
from ba_tui.core.session import RuleLine, RuleScope, RuleVerdict
from ba_tui.core.tool import Effect, Tool
from ba_tui.permissions.approvals import Approvals
from ba_tui.permissions.bounds import BYPASS, MODES, RESTRICTED, Bounds, Level
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
from ba_tui.permissions.conditions import terms_text
from ba_tui.permissions.given import Given
from ba_tui.permissions.hits import add_hits, read_hits
from ba_tui.permissions.hosts import domain_of
from ba_tui.permissions.paths import PathRefused, Workspace, is_guarded
from ba_tui.permissions.rules import CODE_TOOLS, SHELL_TOOLS, Rule, Seen, Subject, literal, read_rule, read_rules
from ba_tui.permissions.twins import holds_secret
from ba_tui.permissions.verdicts import Allow, Ask, Deny, Judgement

if TYPE_CHECKING:
    from ba_tui.permissions.judging import Covered, Files
    from ba_tui.permissions.parts import Part

REMEMBERED_ASKS = 32
PLAN = (
    "Plan mode: nothing is changed or run now. Read what you need, then present the plan; "
    "the person leaves plan mode when it may be carried out."
)
UNBOUND = Bounds()


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
        bounds: Bounds = UNBOUND,
    ) -> None:
        self.workspace = workspace
        self.bounds = bounds
        read, problems = read_rules(rules)
        offered = [rule for rule in read if rule.layer == "project" and rule.verdict == "allow"]
        self._rules = [rule for rule in read if rule not in offered]
        self._given = Given(approvals, bounds.own, offered)
        self.problems = (*problems, *self._given.problems)
        self._hits: Counter[Rule] = Counter()
        self._asked: deque[tuple[Subject, str]] = deque(maxlen=REMEMBERED_ASKS)
        self._mode: Mode = "default"
        # Where only reading is allowed, a mode that was set for other folders is no mistake.
        self.set_mode(mode if not bounds.restricted or mode in bounds.modes() else "default")

    @property
    def mode(self) -> Mode:
        return self._mode

    @property
    def level(self) -> Level:
        if self.bounds.restricted:
            return "restricted"
        return "admin" if self._mode == BYPASS else "default"

    def modes(self) -> Sequence[Mode]:
        return self.bounds.modes()

    def set_mode(self, mode: Mode) -> None:
        if mode not in self.modes():
            if mode == BYPASS and not self.bounds.restricted:
                raise UsageError("Mode bypass can't be chosen later.", "Start ba with --permission-mode bypass.")
            known = mode in MODES or mode == BYPASS
            what = f"Mode {mode} is not for here: {RESTRICTED.lower()}" if known else f"There is no mode {mode!r}."
            raise UsageError(what, f"Modes: {', '.join(self.modes())}.")
        self._mode = mode

    def rules(self) -> Sequence[RuleLine]:
        everything = [*((rule, False) for rule in self._rules), *self._given.all()]
        ranked = sorted(everything, key=lambda each: ("deny", "ask", "allow").index(each[0].verdict))
        before = read_hits(self.bounds.hits) if self.bounds.hits else Counter[str]()
        return [self._line(rule, before[_key(rule)] + self._hits[rule], waits) for rule, waits in ranked]

    def judge(self, tool: Tool, args: Mapping[str, Any], cwd: Path) -> Judgement:
        """What happens with a call. ``cwd`` is where a command would run; paths in arguments start from the root."""
        try:
            subject = self._subject(tool, args, cwd)
        except PathRefused as error:
            return Deny(str(error), malformed=error.malformed, hint=error.hint)
        if rule := self._first("deny", subject):
            self._hits[rule] += 1
            return Deny(f"Denied by the rule {_named(rule)}.{self._why(rule, subject)}", rule.text)
        by: Rule | None = None
        if subject.tool in SHELL_TOOLS and subject.command is not None:
            covered = self._covered(subject)
            lack = covered.lacks[0].why if covered.lacks else ""
            subject = replace(subject, lack=lack, offer=_judging().offered(subject, covered.lacks))
            by = covered.by[0] if covered.by else None
        planned = self._mode == "plan" and not (subject.command is not None and self._only_reads(subject))
        if subject.effect is not Effect.READ and (self.bounds.restricted or planned):
            return Deny(self.bounds.restricted or PLAN)
        if self._mode == BYPASS:
            return Allow()
        if asking := self._asking(subject):
            waits = self._patience(asking, tool, subject, cwd)
            return replace(self._ask(f"the rule {_named(asking[0])} asks", subject, cwd, asking[0]), **waits)
        rule = (by if not subject.lack else None) if subject.parts or subject.lack else self._first("allow", subject)
        if not (rule and rule.narrow) and (why := self.bounds.suspicion(tool, args)):
            return self._ask(why, subject, cwd)
        if rule:
            self._hits[rule] += 1
            return Allow(rule.text)
        return self._by_mode(subject, cwd)

    def asks_at(self, event: str, severity: str = "") -> str:
        """The rule that asks at an event (``after_subtask``, ``on_error``, ``on_plan_change``), empty when none does.
        An error of unknown severity counts as the worst."""
        for rule in (*self._rules, *self._given.rules("ask")):
            if rule.happens(event, severity):
                self._hits[rule] += 1
                return rule.text
        return ""

    def remember(self, rule: str, scope: Literal["session", "always"]) -> None:
        """Allow what ``rule`` covers from now on. It also outranks the ask rules that it was the answer to.

        Raises:
            UsageError: it is no rule, or one that can't be kept.
            StorageError: "always" could not be written; it holds for this session all the same.
        """
        read = read_rule(rule, "allow")
        answers = tuple(dict.fromkeys(ask for subject, ask in self._asked if ask and read.covers(subject)))
        self._given.add(read, "project" if scope == "always" else "session", self.workspace.root, answers)

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        """A rule of the person's own; an allow rule is no stronger than any other. Raises as ``remember``."""
        return self._line(self._given.add(read_rule(rule, verdict), scope, self.workspace.root))

    def remove(self, rule: RuleLine) -> None:
        self._given.remove(rule)

    def grant(self, rules: Callable[[], Sequence[Rule]]) -> None:
        """Allow what ``rules`` cover too, each for as long as it is there."""
        self._given.grants.append(rules)

    def save_hits(self) -> None:
        """Add what was counted since the last time to the project's counts. Writes a file; raises nothing."""
        counted, self._hits = self._hits, Counter()
        if self.bounds.hits:
            add_hits(self.bounds.hits, {_key(rule): count for rule, count in counted.items()})

    def _line(self, rule: Rule, hits: int = 0, waits: bool = False) -> RuleLine:
        terms = terms_text(rule.terms)
        return RuleLine(rule.text, rule.verdict, rule.source, hits, rule.layer, terms, waits)

    def _first(self, verdict: RuleVerdict, subject: Subject) -> Rule | None:
        """The rule that decides for ``verdict``."""
        mine = [rule for rule in self._rules if rule.verdict == verdict]
        return next((rule for rule in (*mine, *self._given.rules(verdict)) if rule.covers(subject)), None)

    def _asking(self, subject: Subject) -> list[Rule]:
        """The ask rules about a call, but for those that the person has answered for such calls."""
        rules = [rule for rule in self._rules if rule.verdict == "ask"] + self._given.rules("ask")
        return [rule for rule in rules if rule.covers(subject) and not self._given.answered(rule, subject)]

    def _patience(self, asking: Sequence[Rule], tool: Tool, subject: Subject, cwd: Path) -> dict[str, Any]:
        """How long the question waits. No answer means yes only where every rule that asks says so, and then neither
        for what can't be undone or told, nor for what leaves the workspace."""
        waits = [rule.terms.timeout for rule in asking if rule.terms.timeout is not None]
        if not waits:
            return {}
        after = {rule.terms.on_timeout for rule in asking if rule.terms.timeout is not None}
        on = after.pop() if len(after) == 1 else "deny"
        if on == "allow":
            grave = {"destructive", "outside the workspace", "shares a secret"} & set(self._risks(subject, cwd))
            sure = not grave and not subject.unsure and len(waits) == len(asking)
            on = on if sure and not self.bounds.suspicion(tool, subject.args) else "deny"
        return {"timeout": min(waits), "on_timeout": on}

    def _why(self, rule: Rule, subject: Subject) -> str:
        if rule.pattern != "@secret":
            return ""
        files = (seen for each in subject.files() for seen in each.paths)
        secret = next(seen for seen in (*subject.paths, *subject.named, *files) if seen.secret)
        return f" {self.workspace.shown(secret.path)} holds secrets, which are neither read nor written."

    def _by_mode(self, subject: Subject, cwd: Path) -> Judgement:
        why = self._doubt(subject, cwd)
        if not why:
            return Allow()
        if waiting := self._given.waiting(subject):
            why = f"{why}; the project's own rule {_named(waiting)} would allow it, but you have not confirmed that yet"
            return replace(self._ask(why, subject, cwd), rule=waiting.text, by=waiting.text)
        return self._ask(why, subject, cwd)

    def _doubt(self, subject: Subject, cwd: Path) -> str:
        """Why the mode asks; empty when it allows."""
        if subject.outside:
            return "it is outside the workspace"
        if subject.effect is Effect.READ or (subject.parts and not subject.lack):
            return ""
        if "unknown" in subject.kinds:
            return "what its SQL does can't be told"
        if self._mode == "accept-edits" and subject.effect is Effect.WRITE and subject.paths and not subject.kinds:
            return ""
        if self._mode == "auto" and (subject.effect is not Effect.EXECUTE or self._stays(subject, cwd)):
            return ""
        doing = {Effect.WRITE: "changes files", Effect.EXECUTE: "runs a command", Effect.NETWORK: "uses the network"}
        if subject.lack:
            return f"{subject.lack.rstrip('.')}{self._because()}"
        what = "changes data" if subject.kinds and subject.effect is Effect.WRITE else doing[subject.effect]
        return f"it {what}, and {self._mode} mode asks before that{self._because()}"

    def _because(self) -> str:
        if self._mode != "auto":
            return ""
        return "; it may reach further than this folder" if self.bounds.confined() else "; there is no sandbox"

    def _stays(self, subject: Subject, cwd: Path) -> bool:
        """Whether a sandbox holds the command, and nothing in its text says that it needs more than the workspace."""
        if not (subject.confined or subject.command is not None) or not self.bounds.confined():
            return False
        further = {"network", "outside the workspace", "shares a secret"} & set(self._risks(subject, cwd))
        return not further and not any(seen.guarded for seen in subject.named)

    def _ask(self, reason: str, subject: Subject, cwd: Path, rule: Rule | None = None) -> Ask:
        by = rule.text if rule else ""
        # A call is judged again after the person was asked; that is the same question.
        again = bool(self._asked) and self._asked[-1] == (subject, by)
        if not again:
            self._asked.append((subject, by))
            self._hits.update([rule] if rule else [])
        reason = f"{reason[:1].upper()}{reason[1:]}."
        return Ask(reason, _suggested(subject), self._risks(subject, cwd), by, self.bounds.timeout)

    def _risks(self, subject: Subject, cwd: Path) -> tuple[Risk, ...]:
        if subject.command is not None:
            code = subject.tool in CODE_TOOLS
            if subject.parts and not subject.trouble:
                return _judging().risks(subject)
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
        parts: tuple[Part, ...] = ()
        trouble = ""
        if tool.effect is Effect.EXECUTE and tool.facts.target:
            command, trouble = str(args.get(tool.facts.target, "")), "nothing was looked at"
            text = without_operators(command) if tool.name in CODE_TOOLS else command
            if tool.name in SHELL_TOOLS:
                studied = _judging().study(command, self.workspace.root, cwd, self._both)
                parts, trouble = studied.parts, studied.trouble
                text = text if trouble else " ".join(part.unread for part in parts).strip()
            if text:
                found = dict.fromkeys(path for pair in named_paths(text, self.workspace, cwd) for path in pair)
                named = tuple(self._seen(path) for path in found)
        call = (tool.name, tool.effect, tool.target(args), command, paths, named)
        subject = Subject(*call, args=_whole(tool, args), confined=tool.facts.confined, parts=parts, trouble=trouble)
        return self._with_sql(subject, tool, args) if tool.facts.sql else subject

    def _with_sql(self, subject: Subject, tool: Tool, args: Mapping[str, Any]) -> Subject:
        """The call with what its SQL does, which may be more than the tool's usual effect, and the files it names."""
        sql = _judging().classify(str(args.get(tool.facts.sql) or ""))
        files = tuple(seen for text in sql.files for seen in self._both(text))
        effect = Effect.NETWORK if sql.network else Effect.WRITE if sql.kinds - {"read"} else subject.effect
        kinds = {*sql.kinds, *(["network"] if sql.network else [])}
        return replace(subject, effect=effect, kinds=frozenset(kinds), paths=(*subject.paths, *files))

    def _both(self, text: str, cwd: Path | None = None) -> list[Seen]:
        """A path as written and as its links lead: a rule about either holds."""
        name, target = self.workspace.both(text, cwd)
        resolved = self._seen(target)
        if name is target or name == target:
            return [resolved]
        written = self._seen(name)
        # Where the file really lies decides about the workspace; what it is called may only make things stricter.
        strict = written.secret or written.guarded
        return [resolved, replace(written, inside=resolved.inside)] if strict else [resolved]

    def _covered(self, subject: Subject) -> Covered:
        """Whether what is known of its commands and the allow rules cover a shell command."""
        rules = [rule for rule in (*self._rules, *self._given.rules("allow")) if rule.verdict == "allow"]
        return _judging().cover(subject, [rule for rule in rules if rule.meant(subject)], self._files())

    def _only_reads(self, subject: Subject) -> bool:
        return bool(subject.parts) and not _judging().cover(subject, (), self._files()).lacks

    def _files(self) -> Files:
        def may(tool: str, effect: Effect) -> Callable[[Seen], bool]:
            return lambda seen: bool(self._first("allow", Subject(tool, effect, paths=(seen,))))

        strict = (*self._rules, *self._given.rules("deny"), *self._given.rules("ask"))
        read, write = may("read_file", Effect.READ), may("write_file", Effect.WRITE)
        kept, secret = _judging().keeper(self.workspace, strict), _judging().secrets_in(self._both)
        return _judging().Files(
            read, write, lambda seen: self.workspace.shown(seen.path), kept, secret, self.bounds.confined
        )

    def _lent(self, seen: Seen, tool: Tool) -> Seen:
        """What is lent counts as inside for who reads, and for nobody else."""
        if seen.inside or not self.workspace.lends(seen.path):
            return seen
        if tool.effect is not Effect.READ:
            raise PathRefused(f"{self.workspace.shown(seen.path)} is read only.", "Write elsewhere.", malformed=False)
        return replace(seen, inside=True)

    def _seen(self, path: Path) -> Seen:
        places = self.workspace.places(path)
        own = self.bounds.own
        secret = holds_secret(path, self.workspace) or bool(own and path == own.keys)
        folders = {own.config, own.data, own.state} if own else set[Path]()
        guarded = any(map(path.is_relative_to, folders)) or any(is_guarded(Path(place)) for place in places or (path,))
        relative = self.workspace.relative(path) if places else None
        return Seen(path, relative, places, bool(places), secret, guarded)


def _judging():
    """Not before a command is judged: most of what it takes to read one is grammar."""
    from ba_tui.permissions import judging  # noqa: PLC0415

    return judging


def _named(rule: Rule) -> str:
    """A rule with its place, for people."""
    return f"{rule.text} ({rule.source or 'given'})"


def _key(rule: Rule) -> str:
    """What tells a rule's hits from those of others."""
    return f"{rule.verdict} {rule.text}{terms_text(rule.terms)}"


def _whole(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """``args`` with the defaults of what is left out, since conditions are about what would really happen."""
    known: Any = tool.input_schema.get("properties")
    if not isinstance(known, Mapping):
        return args
    fields = cast("Mapping[str, Any]", known).items()
    return {**{name: about["default"] for name, about in fields if name not in args and "default" in about}, **args}


def _suggested(subject: Subject) -> str | None:
    """The narrowest rule that covers this call and its like."""
    if subject.tool in SHELL_TOOLS:
        return subject.offer
    if subject.command is not None:
        return f"{subject.tool}({subject.command})" if rememberable(subject.command) else None
    if subject.kinds:
        # Reads need no rule, and what can't be told or reaches further should not get one.
        kinds = set(subject.kinds - {"read"})
        return f"{subject.tool}({kinds.pop()})" if kinds in ({"write"}, {"ddl"}) and not subject.outside else None
    if len(subject.paths) > 1:
        return None
    if subject.paths:
        seen = subject.paths[0]
        about = literal(seen.relative if seen.relative is not None else seen.path.as_posix())
    else:
        about = domain_of(subject.target) or literal(subject.target)
    if not about:
        return subject.tool if subject.effect is not Effect.NETWORK else None
    text = f"{subject.tool}({about})"
    return text if len(about) <= LONGEST_RULE and text.isprintable() and about == about.strip() else None
