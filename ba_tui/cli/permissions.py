"""``ba permissions``: list rules, explain the decision about a call, add and remove the user's rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ba_tui.cli.config import Cwd, folder_of, load
from ba_tui.cli.streams import print_line, say
from ba_tui.core.calls import unknown_tool
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine, RuleVerdict
from ba_tui.core.text.json_text import read_object
from ba_tui.core.tool import Effect, Tool
from ba_tui.flags import Mode
from ba_tui.permissions.answers import ProjectApprovals, all_rules, hits_of
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rule import CODE_TOOLS, read_rule
from ba_tui.permissions.sandbox.confinement import sandbox_for
from ba_tui.permissions.session import started_files
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, JudgedCall
from ba_tui.resources import places, project_root
from ba_tui.settings import printable
from ba_tui.settings.hooks import found_hooks

app = typer.Typer(no_args_is_help=True)

VERDICTS: tuple[RuleVerdict, ...] = ("allow", "ask", "deny")
RuleList = Annotated[list[str] | None, typer.Option(metavar="RULE", help="Check as if this rule were set. Repeatable.")]


@app.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="As one JSON array.")] = False, cwd: Cwd = None) -> int:
    """Print every rule, where it is set and how often it decided here, the strongest first."""
    policy = _policy(folder_of(cwd), (), None)
    lines = policy.rules()
    if json_:
        print_line(json.dumps([_row(line) for line in lines], indent=2))
    else:
        texts = [line.rule + (f" {line.terms}" if line.terms else "") for line in lines]
        widest = max(map(len, texts), default=0)
        for line, text in zip(lines, texts, strict=True):
            hits = f"{line.hits:>5}x" if line.hits else " " * 6
            waits = "; not confirmed yet: ba permissions add --allow --project" if line.waiting else ""
            outer = "; runs outside the sandbox" if line.leaves else ""
            print_line(printable(f"{line.verdict:<5}  {text:<{widest}}  {hits}  ({line.source}{outer}{waits})"))
    for problem in policy.problems:
        say(problem)
    return 1 if policy.problems else 0


def _row(line: RuleLine) -> dict[str, Any]:
    """Return a rule for ``list --json``, with its terms if it has any."""
    row = {"rule": line.rule, "verdict": line.verdict, "source": line.source, "layer": line.layer, "hits": line.hits}
    return {**row, "waiting": line.waiting, **(json.loads(line.terms) if line.terms else {})}


@app.command()
def check(  # noqa: PLR0913 - typer reads one parameter a flag
    command: Annotated[str, typer.Argument(metavar="COMMAND|-", help="The command to check; - reads JSON lines.")],
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that would run.")] = "shell",
    mode: Annotated[Mode | None, typer.Option(help="Check as if in this mode.")] = None,
    allow: RuleList = None,
    ask: RuleList = None,
    deny: RuleList = None,
    json_: Annotated[bool, typer.Option("--json", help="As one JSON object a line.")] = False,
    cwd: Cwd = None,
) -> int:  # fmt: skip
    """Say what would happen with a call, without running anything.

    With -, stdin has one {"command": …} a line, or a tool's own arguments, and stdout one answer a line.
    """
    folder = folder_of(cwd)
    given = [
        RuleLine(rule, verdict, f"flag --{verdict}", layer="flag")
        for verdict, rules in (("deny", deny), ("ask", ask), ("allow", allow))
        for rule in rules or ()
    ]
    policy = _policy(folder, given, mode, held=True)
    checked = _tool(tool, folder)
    lines: Iterable[tuple[str, Mapping[str, Any]]]
    lines = _lines(checked) if command == "-" else [(command, _arguments(checked, command))]
    for text, args in lines:
        answer = _answer(policy, checked, args, text)
        if json_ or command == "-":
            print_line(json.dumps(answer, ensure_ascii=True))
        else:
            print_line(f"{answer['verdict']}: {answer['reason']}")
    return 0


@app.command()
def add(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Such as edit_file(src/**) or shell(git status).")],
    allow: Annotated[bool, typer.Option("--allow", help="Run without asking.")] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Always ask.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Never run.")] = False,
    project: Annotated[bool, typer.Option("--project", help="For this project only; kept in your own files.")] = False,
    user: Annotated[bool, typer.Option("--user", help="For all projects, in your config.yaml: the default.")] = False,
    cwd: Cwd = None,
) -> int:
    """Add a rule of yours. With --project, an allow rule of the project's own that waits for you is confirmed."""
    chosen: list[RuleVerdict] = [name for name, given in zip(VERDICTS, (allow, ask, deny), strict=True) if given]
    if len(chosen) != 1:
        raise UsageError("Choose what the rule does.", "Give one of --allow, --ask and --deny.")
    if project and user:
        raise UsageError("Choose where the rule applies.", "Give one of --project and --user.")
    policy = _policy(folder_of(cwd), (), None)
    line = policy.add(rule, chosen[0], "project" if project else "user")
    print_line(f"{line.verdict} {line.rule}: added to {line.source}")
    return 0


@app.command()
def remove(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule, as `ba permissions list` shows it.")],
    cwd: Cwd = None,
) -> int:
    """Remove a rule from your config.yaml and from what you gave for this project."""
    where, policy = places(), _policy(folder_of(cwd), (), None)
    gone: list[str] = []
    for line in policy.rules():
        file = next((path for path in (where.settings, where.approvals) if _stands_in(line, path)), None)
        if line.rule == rule and file is not None:
            policy.remove(line)
            gone.append(f"{file} ({line.verdict})")
    if not gone:
        raise UsageError(
            f"There is no rule {rule!r} of yours.", "See ba permissions list. Built-in rules can't be removed."
        )
    print_line(f"{rule}: removed from {', '.join(gone)}")
    return 0


def _stands_in(line: RuleLine, file: Path) -> bool:
    return line.source.rpartition(":")[0] == str(file)


def _policy(folder: Path, given: Sequence[RuleLine], mode: Mode | None, *, held: bool = False) -> Policy:
    """Return the policy that the app would use in ``folder``, with the rules of flags. ``held``: and the sandbox."""
    for line in given:
        read_rule(line.rule, line.verdict, line.source)
    where, root = places(), project_root(folder)
    loaded = load(folder)
    hooks, _ = found_hooks(loaded.hooks, root, Trust(where).trusted)
    started = started_files(root, [hook.command for hook in hooks])
    workspace = Workspace(folder, (root, *loaded.settings.add_dirs), started=started)
    rules = [*all_rules(loaded.rules, loaded.settings.commands.domains), *given]
    chosen = mode or loaded.settings.permission_mode
    bounds = Bounds(where, bypass=chosen == "bypass", hits=hits_of(where, root))
    if held:
        sandbox = sandbox_for(loaded.settings, where, workspace)
        bounds = replace(bounds, confined=sandbox.holds, unheld=sandbox.unheld)
    return Policy(workspace, rules, chosen, ProjectApprovals(where.approvals, root), bounds)


def _tool(name: str, folder: Path) -> Tool:
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - a quarter of a second, and --help needs none

    with tools_alone(folder, {}) as tools:
        if tool := tools.registry.get_tool(name):
            return tool
        error = unknown_tool(name, sorted(tools.registry.names())).error
        raise UsageError(error.message if error else name, error.hint if error else "")


def _arguments(tool: Tool, text: str) -> Mapping[str, Any]:
    required = next(iter(tool.input_schema.get("required", ())), "")
    name = tool.facts.target or next(iter(tool.facts.paths), "") or required
    return {name: text} if name else {}


def _lines(tool: Tool) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the calls on stdin: one JSON object a line, with ``command`` or the tool's own arguments."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        args = read_object(line)
        if args is None:
            raise UsageError(f"stdin, line {number}: expected one JSON object.", 'Such as {"command": "git status"}')
        command = args.get("command")
        if isinstance(command, str):
            yield command, {**args, **_arguments(tool, command)}
        elif tool.facts.target in args:
            yield str(args[tool.facts.target]), args
        else:
            raise UsageError(f"stdin, line {number}: expected a text under command.", 'Such as {"command": "ls"}')


def _answer(policy: Policy, tool: Tool, args: Mapping[str, Any], text: str) -> dict[str, Any]:
    judged = policy.judge(JudgedCall(tool, args, policy.workspace.root))
    risk: Sequence[str] = ()
    match judged:
        case Allow(by=rule, profile=profile):
            said = f"The rule {rule} allows it" if rule else f"{policy.mode} mode allows it"
            where = f", in the profile {profile.name}" if tool.effect is Effect.EXECUTE else ""
            verdict, reason = "allow", f"{said}{where}."
        case Ask(by=rule, reason=reason, risks=risk):
            verdict = "ask"
        case _:
            verdict, reason, rule = "deny", judged.reason, judged.by
    return {
        "command": text,
        "verdict": verdict,
        "rule": rule or None,
        "reason": reason,
        "commands": _commands(tool, text),
        "risk": list(risk),
    }


def _commands(tool: Tool, text: str) -> list[str]:
    """Return each simple command that would run; the text itself when it can't be parsed or is code."""
    from ba_tui.permissions.shell.walker import expand_script  # noqa: PLC0415

    if tool.effect is not Effect.EXECUTE:
        return []
    found = () if tool.name in CODE_TOOLS else expand_script(text).commands
    return list(dict.fromkeys(" ".join(word.raw for word in one.argv) or one.text for one in found)) or [text]
