"""Rules, and what commands may use and reach."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from annotated_types import Gt

from ba_tui.core.text.patterns import wildcard_problem
from ba_tui.core.values import frozen
from ba_tui.settings.fields import Amount, Count, FieldCheck, Seconds, Setter, about, off_as_word
from ba_tui.settings.sections.group import SettingsGroup

SandboxMode = Annotated[Literal["required", "auto", "off"], FieldCheck(off_as_word, first=True)]


def _rule_entry(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("rule"), str):
        return cast("dict[str, Any]", value)
    raise ValueError("expected text or a group with rule")


def _wildcards(value: str) -> str:
    if problem := wildcard_problem(value):
        raise ValueError(f"expected a name or a pattern, but {problem}")
    return value


RuleEntry = Annotated[str | dict[str, Any], FieldCheck(_rule_entry, first=True)]


@frozen
class RuleSettings(SettingsGroup):
    """Permission rules such as `edit_file(src/**)`. deny wins over ask, ask over allow, whatever the layer.

    A rule with conditions is a group: `{rule: shell, when: {timeout: {max: 60}}, timeout: 300, on_timeout: deny}`.
    """

    allow: tuple[RuleEntry, ...] = field(default=(), metadata=about("What may run without asking.", "project"))
    ask: tuple[RuleEntry, ...] = field(
        default=(), metadata=about("What always asks.", Setter("anyone", refused=(("on_timeout", "allow"),)))
    )
    deny: tuple[RuleEntry, ...] = field(
        default=(), metadata=about("What never runs.", Setter("anyone", refused=(("on_timeout", "allow"),)))
    )


@frozen
class CommandSettings(SettingsGroup):
    """How commands, Python code and a project's own tools run. In the sandbox, and the limits outside it as well."""

    network: bool = field(default=False, metadata=about("Whether the sandbox lets commands use the network."))
    domains: tuple[str, ...] = field(
        default=(), metadata=about("Hosts and *.domains that commands may reach while their network is off.")
    )
    write: tuple[Path, ...] = field(
        default=(), metadata=about("More files and folders that commands may write in the sandbox.")
    )
    read: tuple[Path, ...] = field(
        default=(),
        metadata=about(
            "More files and folders that commands may read in the sandbox, also files with secrets that you list here."
        ),
    )
    git_hooks: bool = field(
        default=False, metadata=about("Whether git commands of the model run a repository's hooks.")
    )
    memory_gb: Amount = field(default=8, metadata=about("Memory of one process, in GB; 0 for no limit."))
    file_size_gb: Amount = field(
        default=10, metadata=about("The largest file that may be written, in GB; 0 for no limit.")
    )
    processes: Count = field(
        default=1024, metadata=about("Processes and threads that may run at a time; 0 for no limit.")
    )
    output_mb: Annotated[Amount, Gt(0)] = field(
        default=64,
        metadata=about(
            "The largest result stored in full, in MB; of larger results ba keeps the beginning and the end."
        ),
    )
    skill_timeout: Seconds = field(default=30, metadata=about("Timeout for scripts of skills, in seconds."))


@frozen
class ChildEnvironment(SettingsGroup):
    """Which variables programs get that ba starts."""

    keep: tuple[Annotated[str, FieldCheck(_wildcards)], ...] = field(
        default=(),
        metadata=about(
            "Variables to pass to commands although their names look like secrets, such as GITHUB_TOKEN or CI_*."
        ),
    )
    set: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=about("Variables that ba adds for commands and hooks, by name; none whose name looks like a secret."),
    )
