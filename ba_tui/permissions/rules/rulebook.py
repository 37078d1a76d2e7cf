"""Rule files, with lists of rules under ``deny``, ``ask`` and ``allow``; and counts of rule hits.

Files are checked as they are parsed. The bundled one is ``config/hitl_rules.yaml``; ``ba_tui.settings`` reads the rules
in config.yaml.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import did_you_mean, sentence
from ba_tui.permissions.rules.conditions import terms_of
from ba_tui.permissions.rules.rule import EFFECTS, OUTER, read_rule
from ba_tui.resources import UserFolders, bundled, folder_slug, read_regular, save_whole
from ba_tui.settings.document import read_document, shown

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
