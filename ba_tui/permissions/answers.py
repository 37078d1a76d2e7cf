"""Rule files, and the rules that the user gave while ba ran: for the session, the project, or in config.yaml.

Also the project's own allow rules, which apply once the user has confirmed them, and rules of active skills and
commands.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.permissions import RuleLayer, RuleLine, RuleScope
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import did_you_mean, sentence
from ba_tui.core.values import frozen
from ba_tui.permissions.conditions import KEYS as TERMS
from ba_tui.permissions.conditions import NO_TERMS, terms_of, terms_text
from ba_tui.permissions.rule import EFFECTS, OUTER, Rule, Subject, read_rule, read_rules, until_corrected, widened
from ba_tui.resources import UserFolders, bundled, exclusive, folder_slug, read_regular, save_whole
from ba_tui.settings import add_item, remove_item
from ba_tui.settings.document import load_mapping, read_document, shown

log = logging.getLogger(__name__)

HEADER = """\
# The rules you gave "always in this project", by project folder. Remove a line to be asked again.
# verdict: the rule's verdict, if it is not allow.
# answers: the ask rules that the answer settled and so outranks.
# from: the folder that relative paths start from, if it is not the project's.
"""


@frozen
class Approval:
    """A rule that the user gave. An allow rule outranks the ask rules in ``answers`` and no others."""

    rule: Rule
    answers: tuple[str, ...] = ()

    def answered(self, ask: Rule, subject: Subject) -> bool:
        return self.rule.verdict == "allow" and ask.text in self.answers and self.rule.covers(subject)


class ProjectApprovals:
    """The answers "always in this project". They are kept in the user's config folder, never in the project."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path = path
        self.project = str(project)

    def read(self) -> tuple[list[Approval], list[str]]:
        """Return the kept answers, and a problem for each unusable entry, one per line."""
        document = read_document(self.path)
        if document is None:
            return [], []
        if document.problems:
            return [], [str(problem) for problem in document.problems]
        found: list[Approval] = []
        problems: list[str] = []
        entries: Any = document.data.get(self.project, [])
        for index, entry in enumerate(cast("Sequence[Any]", entries) if isinstance(entries, list) else [entries]):
            source = f"{self.path}:{document.line((self.project, index))}"
            match entry:
                case {"rule": str(text), **rest}:
                    try:
                        said = {key: rest[key] for key in TERMS if key in rest}
                        rule = read_rule(text, str(rest.get("verdict", "allow")), source, terms_of(said))
                        rule = replace(rule, base=Path(str(rest.get("from", self.project))), layer="project")
                        found.append(Approval(rule, _texts(rest.get("answers"))))
                    except UsageError as error:
                        wide = widened(text, str(rest.get("verdict", "")), source)
                        found += [Approval(replace(wide, layer="project"))] if wide else []
                        problems.append(f"{error}{until_corrected(wide)}")
                case _:
                    problems.append(f"{source}: expected an entry with `rule`; it is ignored")
        return found, problems

    def add(self, rule: Rule, answers: Sequence[str] = (), base: Path | None = None) -> None:
        """Keep ``rule`` for this project, without duplicates. Relative paths start from ``base``, by default the
        project's folder.

        Raises:
            StorageError: the file can't be written, or is unreadable and so must not be overwritten.
        """
        with exclusive(self.path.parent):
            projects = load_mapping(self.path)
            entry: dict[str, Any] = {"rule": rule.text, **json.loads(terms_text(rule.terms) or "{}")}
            if rule.verdict != "allow":
                entry["verdict"] = rule.verdict
            if answers:
                entry["answers"] = list(answers)
            if base is not None and str(base) != self.project:
                entry["from"] = str(base)
            entries = _entries(projects.get(self.project))
            others = [each for each in entries if _same(each) != _same(entry)]
            projects[self.project] = [*others, entry]
            save_whole(self.path, HEADER + yaml.safe_dump(projects, allow_unicode=True, sort_keys=False), mode=0o600)

    def remove(self, rule: str, verdict: str = "") -> bool:
        """Remove ``rule``, with any verdict if none is given; return False if it was not kept.

        Raises:
            StorageError: as ``add``.
        """
        with exclusive(self.path.parent):
            projects = load_mapping(self.path)
            entries = _entries(projects.get(self.project))
            rest = [
                entry
                for entry in entries
                if entry.get("rule") != rule or verdict not in {"", entry.get("verdict", "allow")}
            ]
            if len(rest) == len(entries):
                return False
            projects[self.project] = rest
            save_whole(self.path, HEADER + yaml.safe_dump(projects, allow_unicode=True, sort_keys=False), mode=0o600)
            return True


def problems_of(rules: Iterable[RuleLine], approvals: ProjectApprovals) -> list[str]:
    """Return problems of ``rules`` and of the kept answers, one per line."""
    return [*read_rules(rules)[1], *approvals.read()[1]]


def _entries(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _same(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key by which two entries are the same rule."""
    return (entry.get("rule"), entry.get("verdict"), entry.get("from"), str(entry.get("when")))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in cast("list[Any]", value)) if isinstance(value, list) else ()


SESSION = "this session"


class PersonRules:
    """Holds the user's rules. Threads add and remove rules, since that writes files, while other threads judge calls.

    ``problems``: unusable kept answers, one per line.
    """

    def __init__(
        self, approvals: ProjectApprovals | None, own: UserFolders | None, offered: Sequence[Rule] = ()
    ) -> None:
        self._store = approvals
        self._own = own
        self._offered = offered
        """The project's own allow rules."""
        self._approvals: tuple[Approval, ...] = ()
        """Replaced as a whole, so that readers need no lock."""
        self._changing = threading.Lock()
        self.problems: list[str] = []
        self.grants: list[Callable[[], Sequence[Rule]]] = []
        """Allow rules that apply as long as they are returned."""
        if approvals:
            read, self.problems = approvals.read()
            self._approvals = tuple(read)

    def rules(self, verdict: str) -> list[Rule]:
        answered = [approval.rule for approval in self._approvals if approval.rule.verdict == verdict]
        return [*answered, *self._granted()] if verdict == "allow" else answered

    def all(self) -> Iterator[tuple[Rule, bool]]:
        """Yield every rule, and whether it waits for confirmation."""
        yield from ((approval.rule, False) for approval in self._approvals)
        yield from ((rule, False) for rule in self._granted())
        yield from ((rule, not self._confirmed(rule)) for rule in self._offered)

    def _granted(self) -> list[Rule]:
        # Rules of a skill or command may allow commands, but never outside the sandbox.
        return [rule for rules in self.grants for rule in rules() if rule.tool != OUTER]

    def answered(self, ask: Rule, subject: Subject) -> bool:
        """Return whether the user has answered ``ask`` for such calls."""
        return any(approval.answered(ask, subject) for approval in self._approvals)

    def waiting(self, subject: Subject) -> Rule | None:
        """Return the project's rule that would allow the call if the user confirmed it; None if there is none."""
        return next((rule for rule in self._offered if not self._confirmed(rule) and rule.covers(subject)), None)

    def add(self, rule: Rule, scope: RuleScope, base: Path, answers: tuple[str, ...] = ()) -> Rule:
        """Apply ``rule`` from now on, and return it as stored. Relative paths start from ``base``.

        Scopes beyond the session write a file and may wait for another process: call it off the event loop.

        Raises:
            UsageError, StorageError: the rule can't be stored; it still applies to this session.
        """
        offered = next((each for each in self._offered if _same_text(each, rule)), None)
        if offered and rule.terms == NO_TERMS:
            # A confirmed rule keeps the conditions that the project gave it.
            rule = replace(rule, terms=offered.terms)
        held = Approval(replace(rule, source=SESSION, layer="session"), answers)
        with self._changing:
            self._approvals = (*self._approvals, held)
        if scope == "session":
            return held.rule
        layer: RuleLayer = "project" if scope == "project" else "user"
        saved = replace(held.rule, source=self._keep(held.rule, scope, base, answers), layer=layer)
        with self._changing:
            self._approvals = tuple(Approval(saved, answers) if each is held else each for each in self._approvals)
        return saved

    def remove(self, line: RuleLine) -> None:
        """Remove a rule. Raises UsageError for a rule that the user did not give, StorageError."""
        mine = [approval for approval in self._approvals if _is(approval.rule, line)]
        if mine and line.layer == "project" and self._store:
            self._store.remove(line.rule, line.verdict)
        elif line.layer == "user" and self._own:
            if not remove_item(self._own, f"permissions.{line.verdict}", _entry(line.rule, line.terms)) and not mine:
                raise UsageError(f"{line.rule} is not in {self._own.settings}.", f"It is in {line.source}.")
        elif not mine:
            raise UsageError(f"{line.rule} is not one of your rules.", f"It is in {line.source or 'another place'}.")
        with self._changing:
            self._approvals = tuple(approval for approval in self._approvals if approval not in mine)

    def _keep(self, rule: Rule, scope: Literal["project", "user"], base: Path, answers: tuple[str, ...]) -> str:
        """Store the rule and return where."""
        if scope == "project" and self._store:
            self._store.add(rule, answers, base)
            return str(self._store.path)
        if scope == "user" and self._own:
            return str(add_item(self._own, f"permissions.{rule.verdict}", _entry(rule.text, terms_text(rule.terms))))
        return SESSION

    def _confirmed(self, offered: Rule) -> bool:
        return any(
            _same_text(approval.rule, offered) and approval.rule.terms in {offered.terms, NO_TERMS}
            for approval in self._approvals
        )


def _same_text(one: Rule, other: Rule) -> bool:
    return (one.text, one.verdict) == (other.text, other.verdict)


def _is(rule: Rule, line: RuleLine) -> bool:
    return (rule.text, rule.verdict, rule.source, terms_text(rule.terms)) == (
        line.rule,
        line.verdict,
        line.source,
        line.terms,
    )


def _entry(rule: str, terms: str) -> str | dict[str, Any]:
    """Return the rule as an entry of a list in config.yaml."""
    return {"rule": rule, **json.loads(terms)} if terms else rule


def grantable(rules: Iterable[str], tools: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split ``rules`` into those that can allow a call of these ``tools``, and the others."""
    good, other = list[str](), list[str]()
    for text in rules:
        name = text.partition("(")[0]
        known = name in tools or name in EFFECTS or name.startswith("mcp__")
        (good if known and _readable(text) else other).append(text)
    return tuple(good), tuple(other)


def _readable(text: str) -> bool:
    try:
        read_rule(text, "allow")
    except UsageError:
        return False
    return True


class GrantedRules:
    """Rules that apply as long as ``texts`` returns them. Invalid texts are logged and skipped; ``source`` names the
    origin."""

    def __init__(self, texts: Callable[[], tuple[str, ...]], source: str) -> None:
        self._texts = texts
        self._source = source
        self._read: tuple[tuple[str, ...], tuple[Rule, ...]] = ((), ())

    def __call__(self) -> Sequence[Rule]:
        if (texts := self._texts()) != self._read[0]:
            self._read = (texts, tuple(rule for text in texts if (rule := self._rule(text))))
        return self._read[1]

    def _rule(self, text: str) -> Rule | None:
        try:
            return read_rule(text, "allow", self._source)
        except UsageError as error:
            log.info("%s names %s: %s", self._source, text, error)
            return None


NETWORK = "shell_network"
"""What rules call the network access of commands in the sandbox."""
VERDICTS = ("deny", "ask", "allow")


def bundled_rules() -> list[RuleLine]:
    """Return the rules that ship with ba."""
    return rules_from(bundled("config") / "hitl_rules.yaml", "bundled")


def all_rules(given: Iterable[RuleLine], domains: Iterable[str]) -> list[RuleLine]:
    """Return the bundled rules, those of the settings, and the setting ``commands.domains`` as rules."""
    own = (RuleLine(f"{NETWORK}(domain:{name})", "allow", "commands.domains", layer="user") for name in domains)
    return [*bundled_rules(), *given, *own]


def strangers(rules: Iterable[RuleLine], tools: Collection[str]) -> list[str]:
    """Return a line for each rule about a tool that does not exist, and so has no effect.

    Tools of servers and patterns are left out because their tools may appear later, and rules of Claude Code because it
    has tools that ba lacks.
    """
    found: list[str] = []
    for line in rules:
        name = line.rule.partition("(")[0]
        if (
            line.layer == "claude"
            or name in tools
            or name in {NETWORK, OUTER, *EFFECTS}
            or name.startswith(("mcp__", "mcp."))
            or "*" in name
        ):
            continue
        where = f"{line.source}: " if line.source else ""
        found.append(f"{where}permission rule {line.rule!r}: there is no tool {name!r}{did_you_mean(name, tools)}")
    return found


def unknown_tools(rules: Sequence[RuleLine], tools: Collection[str], *, strict: bool) -> Sequence[str]:
    """Return rules about tools that don't exist. ``strict``: raise UsageError for such a rule of a flag."""
    if strict and (wrong := strangers((each for each in rules if each.layer == "flag"), tools)):
        raise UsageError(sentence(wrong[0]), "See ba tools list.")
    return strangers(rules, tools)


def rules_from(path: Path, name: str = "") -> list[RuleLine]:
    """Return the rules in the file at ``path``. ``name`` is shown as their source, by default file and line.

    Raises:
        UsageError: the file is missing or invalid; names file, line and what was expected.
    """
    document = read_document(path)
    if document is None:
        raise UsageError(f"{path} does not exist.", "Restore the file or install ba again.")
    if document.problems:
        raise UsageError(f"{document.problems[0]}.", "Correct the file.")
    found: list[RuleLine] = []
    for verdict, rules in document.data.items():
        where = f"{path}:{document.line((verdict,))}"
        if verdict not in VERDICTS:
            raise UsageError(f"{where}: expected one of {', '.join(VERDICTS)}, got {verdict!r}.", "Correct the file.")
        if not isinstance(rules, list):
            raise UsageError(f"{where}: {verdict}: expected a list of rules, got {shown(rules)}.", "Correct the file.")
        for index, rule in enumerate(cast("list[Any]", rules)):
            where = f"{path}:{document.line((verdict, index))}"
            entry = cast("dict[str, Any]", rule if isinstance(rule, dict) else {"rule": rule})
            text = entry.get("rule")
            if not isinstance(text, str):
                raise UsageError(
                    f"{where}: {verdict}: expected text or a group with rule, got {shown(cast('Any', rule))}.",
                    "Correct the file.",
                )
            read_rule(text, verdict, where, terms_of(entry))
            found.append(RuleLine(text, verdict, name or where, layer="bundled", terms=terms_of(entry)))
    return found


LARGEST = 262_144
FOLDER = "rule-hits"


def hits_of(own: UserFolders, project: Path) -> Path:
    """Return the file of a project's rule hit counts."""
    return own.state / FOLDER / f"{folder_slug(project)}.jsonl"


def read_hits(path: Path) -> Counter[str]:
    """Return how often each rule decided; unreadable lines are skipped."""
    found: Counter[str] = Counter()
    with suppress(OSError):
        for line in read_regular(path, 4 * LARGEST).splitlines():
            counts = read_object(line) or {}
            found.update({key: n for key, n in counts.items() if isinstance(n, int) and 0 < n < 10**9})
    return found


def add_hits(path: Path, counts: Mapping[str, int]) -> None:
    """Append ``counts`` to the file, in one write so that two processes never mix.

    Errors are ignored: lost counts do no harm.
    """
    if not counts:
        return
    with suppress(OSError, StorageError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, json.dumps(counts, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            large = os.fstat(handle).st_size > LARGEST
        finally:
            os.close(handle)
        if large:
            save_whole(path, json.dumps(read_hits(path), ensure_ascii=False) + "\n", mode=0o600)
