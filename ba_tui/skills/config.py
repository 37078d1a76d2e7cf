"""``skills.yaml``: which skills are told to models, which start by themselves. Layers, a later one wins.

Which skills exist is not known here; ``catalog`` finds them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.values import frozen
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import Problem, shown
from ba_tui.settings.options import non_empty_text, options_files, switch, unknown

SWITCHES = ("enabled", "auto_load_on_file_upload")
OPTIONS = ("enabled", "available_to_subagent", "description", "auto_load_on_file_types")


@frozen
class SkillChoice:
    """What files say of one skill. ``file_types`` are name endings in small letters, without the dot."""

    enabled: bool = True
    available_to_subagent: bool = True
    description: str = ""
    file_types: tuple[str, ...] = ()


UNSAID = SkillChoice()


@frozen
class SkillChoices:
    """All layers together. ``named``: skills that a person's own file names, with the place."""

    enabled: bool = True
    auto_load: bool = True
    core: tuple[str, ...] = ()
    optional: Mapping[str, SkillChoice] = field(default_factory=dict[str, SkillChoice])
    named: Mapping[str, Problem] = field(default_factory=dict[str, Problem])
    problems: tuple[Problem, ...] = ()

    def of(self, id: str) -> SkillChoice:
        return self.optional.get(id, UNSAID)

    def unknown(self, ids: Collection[str]) -> tuple[Problem, ...]:
        """A line for each name that is no skill's."""
        return tuple(
            replace(place, text=f"there is no skill {name!r}{did_you_mean(name, ids)}")
            for name, place in self.named.items()
            if name not in ids
        )


def read_choices(bundled: Path | None, others: Sequence[Path] = (), read: Read = read_regular) -> SkillChoices:
    """What ``bundled`` says, and over it the files that there are. Never raises: ``problems`` say what is wrong."""
    result = SkillChoices()
    paths = (*([bundled] if bundled else []), *others)
    for path, file in options_files(paths, ("global", "core", "optional"), read):
        switches = file.group("global", _switch_complaint)
        core = dict.fromkeys((*result.core, *file.core()))
        optional = dict(result.optional)
        for name, given in file.optional(_complaint).items():
            if (endings := given.pop("auto_load_on_file_types", None)) is not None:
                given["file_types"] = tuple(dict.fromkeys(text.strip().lower().lstrip("*.") for text in endings))
            optional[name] = replace(optional.get(name, UNSAID), **given)
        result = SkillChoices(
            switches.get("enabled", result.enabled),
            switches.get("auto_load_on_file_upload", result.auto_load),
            tuple(core),
            optional,
            result.named if path == bundled else {**result.named, **file.named},
            (*result.problems, *file.problems),
        )
    return result


def _switch_complaint(option: str, value: Any) -> str:
    return switch(value) if option in SWITCHES else unknown(option, SWITCHES)


def _complaint(option: str, value: Any) -> str:
    """What is wrong with an option of a skill; empty when nothing is."""
    match option:
        case "enabled" | "available_to_subagent":
            return switch(value)
        case "description":
            return non_empty_text(value)
        case "auto_load_on_file_types":
            return "" if _endings(value) else f"expected a list of name endings such as [pdf, csv], got {shown(value)}"
        case _:
            return unknown(option, OPTIONS)


def _endings(value: Any) -> bool:
    items = cast("list[Any]", value) if isinstance(value, list) else [None]
    return all(isinstance(item, str) and item.strip(" *.") for item in items)
