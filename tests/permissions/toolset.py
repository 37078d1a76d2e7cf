"""Tools of every effect that do nothing, and a policy with the bundled rules over a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ba_tui.core.events import Mode
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.answers import ProjectApprovals, bundled_rules
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import Bounds, JudgedCall, Judgement
from ba_tui.resources import places


async def nothing(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("")


def tool(name: str, effect: Effect, target: str = "path", paths: tuple[str, ...] = ("path",)) -> Tool:
    return Tool(name, "", {}, nothing, effect, facts=ToolFacts(target=target, paths=paths))


READ = tool("read_file", Effect.READ)
EDIT = tool("edit_file", Effect.WRITE)
SHELL = tool("shell", Effect.EXECUTE, "command", ())
PYTHON = tool("python", Effect.EXECUTE, "code", ())
KERNEL = replace(PYTHON, facts=replace(PYTHON.facts, reads=True))
FETCH = tool("web_fetch", Effect.NETWORK, "url", ())
CLOCK = tool("now", Effect.READ, "", ())


@cache
def cases(name: str) -> Any:
    """The commands of a file beside the tests of the shell. Every process reads them all to name its tests."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((Path(__file__).parent / "shell" / name).read_text(), loader)


def lines(verdict: str, *rules: str) -> list[RuleLine]:
    return [RuleLine(rule, verdict, "test") for rule in rules]


def policy(
    root: Path,
    *rules: RuleLine,
    mode: Mode = "default",
    bundled: bool = True,
    bounds: Bounds | None = None,
    held: bool = False,
) -> Policy:
    """``held``: as where a sandbox holds what only reads."""
    kept = ProjectApprovals(places().approvals, root)
    lines = [*(bundled_rules() if bundled else ()), *rules]
    made = Bounds(own=places(), confined=lambda: held, unheld=lambda: "" if held else "there is no sandbox")
    return Policy(Workspace(root), lines, mode, kept, bounds or made)


def verdict(judged: Judgement) -> str:
    return type(judged).__name__.lower()


def judge(rules: Policy, tool: Tool, about: str | Sequence[str]) -> str:
    args = {tool.facts.target: about} if tool.facts.target else {}
    return verdict(rules.judge(JudgedCall(tool, args, rules.workspace.root)))
