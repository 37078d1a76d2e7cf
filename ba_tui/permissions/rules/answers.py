"""The rules that a person gave while ba ran: for this session, for this project, or in their own config.yaml.

Beside them the allow rules of a project, which wait here until the person has confirmed them once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLayer, RuleLine, RuleScope
from ba_tui.permissions.rules.approvals import Approval, Approvals
from ba_tui.permissions.rules.conditions import NO_TERMS, terms_text
from ba_tui.permissions.rules.rule import OUTER, Rule, Subject
from ba_tui.resources import Places

SESSION = "this session"


class PersonRules:
    """Rules are given and taken back in threads, as files are written for them, while calls are judged in others.

    ``problems``: kept answers that can't be used, one line each.
    """

    def __init__(self, approvals: Approvals | None, own: Places | None, offered: Sequence[Rule] = ()) -> None:
        self._store = approvals
        self._own = own
        self._offered = offered
        """The project's own allow rules."""
        self._approvals: tuple[Approval, ...] = ()
        """Replaced as a whole, so that whoever reads it needs no lock."""
        self._changing = threading.Lock()
        self.problems: list[str] = []
        self.grants: list[Callable[[], Sequence[Rule]]] = []
        """Rules that allow as long as they are there."""
        if approvals:
            read, self.problems = approvals.read()
            self._approvals = tuple(read)

    def rules(self, verdict: str) -> list[Rule]:
        answered = [approval.rule for approval in self._approvals if approval.rule.verdict == verdict]
        return [*answered, *self._granted()] if verdict == "allow" else answered

    def all(self) -> Iterator[tuple[Rule, bool]]:
        """Every rule, and whether it waits."""
        yield from ((approval.rule, False) for approval in self._approvals)
        yield from ((rule, False) for rule in self._granted())
        yield from ((rule, not self._confirmed(rule)) for rule in self._offered)

    def _granted(self) -> list[Rule]:
        # What a skill or a command brings may let something run, but never outside the sandbox.
        return [rule for rules in self.grants for rule in rules() if rule.tool != OUTER]

    def answered(self, ask: Rule, subject: Subject) -> bool:
        """Whether the person has answered ``ask`` for such calls."""
        return any(approval.answered(ask, subject) for approval in self._approvals)

    def waiting(self, subject: Subject) -> Rule | None:
        """The project's rule that would allow the call, if only it were confirmed."""
        return next((rule for rule in self._offered if not self._confirmed(rule) and rule.covers(subject)), None)

    def add(self, rule: Rule, scope: RuleScope, base: Path, answers: tuple[str, ...] = ()) -> Rule:
        """Hold ``rule`` from now on; the rule as it is held. Relative paths start from ``base``. For a scope beyond the
        session it writes a file, and may wait for another process that writes it: call it off the loop.

        Raises:
            UsageError, StorageError: it can't be kept; it holds for this session all the same.
        """
        offered = next((each for each in self._offered if _same_text(each, rule)), None)
        if offered and rule.terms == NO_TERMS:
            # Confirming takes the rule as the project has it, with its conditions.
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
        """Take a rule back. Raises UsageError for one that is not the person's own, StorageError."""
        mine = [approval for approval in self._approvals if _is(approval.rule, line)]
        if mine and line.layer == "project" and self._store:
            self._store.remove(line.rule, line.verdict)
        elif line.layer == "user" and self._own:
            from ba_tui.settings import remove_item  # noqa: PLC0415 - seldom done

            if not remove_item(self._own, f"permissions.{line.verdict}", _entry(line.rule, line.terms)) and not mine:
                raise UsageError(f"{line.rule} is not in {self._own.settings}.", f"It is in {line.source}.")
        elif not mine:
            raise UsageError(f"{line.rule} is not one of your rules.", f"It is in {line.source or 'another place'}.")
        with self._changing:
            self._approvals = tuple(approval for approval in self._approvals if approval not in mine)

    def _keep(self, rule: Rule, scope: Literal["project", "user"], base: Path, answers: tuple[str, ...]) -> str:
        """Write it down; says where."""
        if scope == "project" and self._store:
            self._store.add(rule, answers, base)
            return str(self._store.path)
        if scope == "user" and self._own:
            from ba_tui.settings import add_item  # noqa: PLC0415 - see remove

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
    """The rule as it stands in a list of config.yaml."""
    return {"rule": rule, **json.loads(terms)} if terms else rule
