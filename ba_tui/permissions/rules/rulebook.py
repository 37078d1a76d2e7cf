"""Rule files: lists of rules under ``deny``, ``ask`` and ``allow``, checked as they are read.

The bundled one is ``config/hitl_rules.yaml``; rules in config.yaml are read by ``ba_tui.settings``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.text.wording import did_you_mean, sentence
from ba_tui.permissions.rules.conditions import terms_of
from ba_tui.permissions.rules.rule import EFFECTS, OUTER, read_rule
from ba_tui.resources import bundled
from ba_tui.settings.document import read_document, shown

NETWORK = "shell_network"
"""What rules call the network of commands in the sandbox."""
VERDICTS = ("deny", "ask", "allow")


def bundled_rules() -> list[RuleLine]:
    """The rules that ship with ba."""
    return rules_from(bundled("config") / "hitl_rules.yaml", "bundled")


def all_rules(given: Iterable[RuleLine], domains: Iterable[str]) -> list[RuleLine]:
    """The bundled rules, those of the settings, and the setting ``commands.domains`` as rules."""
    own = (RuleLine(f"{NETWORK}(domain:{name})", "allow", "commands.domains", layer="user") for name in domains)
    return [*bundled_rules(), *given, *own]


def strangers(rules: Iterable[RuleLine], tools: Collection[str]) -> list[str]:
    """A line for each of ``rules`` that is about no tool of ``tools``: it would never count. A server's tools may come
    later, and so may those that a pattern means. Claude Code has tools that ba has not yet."""
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
    """Rules about no tool of ``tools``. Raises UsageError for one of a flag where nobody is there to read of it."""
    if strict and (wrong := strangers((each for each in rules if each.layer == "flag"), tools)):
        raise UsageError(sentence(wrong[0]), "See ba tools list.")
    return strangers(rules, tools)


def rules_from(path: Path, name: str = "") -> list[RuleLine]:
    """The rules in the file at ``path``; ``name`` is shown as their source, else file and line are.

    Raises:
        UsageError: the file is missing or something in it is wrong; names file, line and what was expected.
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
