"""What the person allowed "always in this project": kept in their own config folder, never in the project.

Session-long answers live in ``policy`` only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import yaml

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.values import frozen
from ba_tui.permissions.rules.conditions import KEYS as TERMS
from ba_tui.permissions.rules.conditions import terms_of, terms_text
from ba_tui.permissions.rules.rule import Rule, Subject, read_rule, read_rules, until_corrected, widened
from ba_tui.resources import exclusive, save_whole
from ba_tui.settings.document import load_mapping, read_document

HEADER = """\
# The rules you gave "always in this project", by project folder. Remove a line to be asked again.
# verdict: what the rule says when it does not allow.
# answers: the ask rules that the answer was given to, and so is stronger than.
# from: the folder that relative paths start from, when it is not the project's.
"""


@frozen
class Approval:
    """A rule that a person gave. One that allows is stronger than the ask rules in ``answers``, and than no other."""

    rule: Rule
    answers: tuple[str, ...] = ()

    def answered(self, ask: Rule, subject: Subject) -> bool:
        return self.rule.verdict == "allow" and ask.text in self.answers and self.rule.covers(subject)


class Approvals:
    """The answers kept for one project."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path = path
        self.project = str(project)

    def read(self) -> tuple[list[Approval], list[str]]:
        """The answers that are kept, and a line for each entry that can't be used."""
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
        """Keep ``rule`` for this project, once. Its relative paths start from ``base``, or from the project's folder.

        Raises:
            StorageError: the file can't be written, or can't be understood and so must not be.
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
        """Forget ``rule``, whatever its verdict if none is named; False when it was not kept.

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


def problems_of(rules: Iterable[RuleLine], approvals: Approvals) -> list[str]:
    """What can't be used of ``rules`` and of the answers that are kept, one line each."""
    return [*read_rules(rules)[1], *approvals.read()[1]]


def _entries(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _same(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two entries the same rule."""
    return (entry.get("rule"), entry.get("verdict"), entry.get("from"), str(entry.get("when")))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in cast("list[Any]", value)) if isinstance(value, list) else ()
