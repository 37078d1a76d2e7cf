"""The guards of every tool of a conversation in their order, the state that they share, and those of the user's own
commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.sharing import SecretSharing
from ba_tui.permissions.shell.walker import expand_script
from ba_tui.tools.guards.output import NOWHERE, OutputDelivery, output, secrets
from ba_tui.tools.guards.permission import CallJudge, PermissionGate, Remember, Settle, never, settled
from ba_tui.tools.guards.reliability import Breakers, breaker, retry, timeout
from ba_tui.tools.guards.repeats import CallMemory, once, repeats
from ba_tui.tools.guards.validate import validate
from ba_tui.tools.shells import started_in
from ba_tui.tools.toolbox import SessionPlace


@frozen
class HookGuards:
    """The guards for hooks ``before`` a call is judged, and ``after`` its result is final. hooks.py makes them; it
    loads only if there are hooks."""

    before: Guard
    after: Guard


def unhooked(tool: Tool) -> Tool:
    """Return ``tool`` unchanged: the guard without hooks."""
    return tool


UNHOOKED = HookGuards(unhooked, unhooked)


@frozen
class SharedGuards:
    """The shared state of a conversation's guards, besides consent: cached results, failure counts, stored results,
    secrets."""

    memory: CallMemory
    health: Breakers
    delivery: OutputDelivery = NOWHERE
    sharing: SecretSharing = field(default_factory=SecretSharing)
    checkpoint: Guard | None = None
    """Saves files before the first change of a turn; None to save nothing."""
    recording: Guard | None = None
    """Records written files that run code or instruct models; None in a copy of the project."""
    settle: Settle = settled
    """Asks about protected files that commands changed, before another command runs without a question."""
    naming: Guard | None = None
    """Replaces ``@skill:ID`` in calls with full paths."""
    mode_changed: Callable[[], Awaitable[None]] = never
    """Returns when the user chose another mode, which may answer an open question."""


def pipeline(
    place: SessionPlace,
    judge: CallJudge,
    remember: Remember,
    shared: SharedGuards | None = None,
    hooks: HookGuards = UNHOOKED,
    writers: Collection[str] | None = None,
) -> Guard:
    """Return the guard of all tools of a conversation, including later ones. ``writers``: the names of its tools that
    write, which may grow; None to collect them."""
    workspace = place.workspace
    kept = shared or SharedGuards(CallMemory(workspace.resolve), Breakers())
    collected: set[str] = set()
    consent = PermissionGate(
        judge, remember, partial(started_in, workspace), workspace.shown, kept.settle, kept.mode_changed
    ).guard
    again = repeats(collected if writers is None else writers)

    def guard(tool: Tool) -> Tool:
        if tool.effect is Effect.WRITE:
            collected.add(tool.name)
        return guarded(tool, consent, again, kept, hooks)

    return guard


def guarded(
    tool: Tool, permission: Guard, repeats: Guard, shared: SharedGuards | None = None, hooks: HookGuards = UNHOOKED
) -> Tool:
    """Return ``tool`` within all guards, listed from the outermost."""
    kept = shared or SharedGuards(CallMemory(Path), Breakers())
    guards: tuple[Guard, ...] = (
        # Secrets are removed last from everything that leaves a tool, including failures and partial output.
        secrets(kept.sharing),
        # Comments of hooks are not shortened with the result.
        hooks.after,
        # Results of all guards below are shortened, once.
        partial(output, delivery=kept.delivery),
        # Repeated calls are stopped before the user is asked.
        repeats,
        # All guards below get valid arguments; those that a hook rewrites are checked again.
        validate,
        # Hooks, rules and the user see the real paths of a call.
        kept.naming or unhooked,
        # Hooks may deny or rewrite; their "allow" does not override rules, so permission comes after them.
        hooks.before,
        permission,
        # Only allowed calls are answered from the cache and counted by the breaker.
        once(kept.memory),
        breaker(kept.health),
        # Files are saved once, before the first attempt.
        kept.checkpoint or unhooked,
        # Written files that run code or instruct models are recorded until the user accepts them.
        kept.recording or unhooked,
        # Each attempt has the whole time limit; waiting for the user does not count.
        retry(),
        timeout,
    )
    for guard in reversed(guards):
        tool = guard(tool)
    return tool


# The user's own commands and queries: they run without a question unless a rule denies them.
_EDITORS = ("vi", "vim", "nvim", "nano", "pico", "emacs", "micro", "hx", "helix", "joe", "mcedit", "kak")
_MONITORS = ("top", "htop", "btop", "atop", "mc", "ranger", "nnn", "tig", "lazygit", "watch", "fzf")
SCREENS = frozenset((*_EDITORS, *_MONITORS))
"""Programs that use the whole screen."""
PAGERS = frozenset({"less", "more", "most"})
_SHELLS = ("python", "python3", "ipython", "node", "irb", "bash", "sh", "zsh", "fish", "tmux", "screen")
_CLIENTS = ("ftp", "sftp", "bc", "gdb", "psql", "mysql", "sqlite3", "duckdb")
PROMPTING = frozenset((*_SHELLS, *_CLIENTS))
"""Programs that read from the keyboard without arguments and input."""
BATCH = ("--version", "--help", "-h", "-b", "-es", "-Es", "--batch", "-batch", "--headless")
"""Options with which a program does not use the screen."""
ELSEWHERE = "Run it in another terminal, or press Ctrl+Z, run it there, and come back with fg."


def own_shell(shell: Tool, consent: Guard, sharing: SecretSharing, delivery: OutputDelivery) -> Tool:
    """Return ``shell`` for the user's own commands, which run without a question unless a rule denies them.

    Shared results are cleaned and stored like all results; of a private command nothing is stored where a model may
    read.
    """
    shared = secrets(sharing)(_titled(output(consent(shell), delivery)))
    private = output(consent(shell))

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        command: str = args["command"]
        if found := _interactive(command):
            return failure("invalid_parameters", found[0], hint=found[1])
        return await (private if call.private else shared).run({"command": command}, call)

    return replace(shell, run=run, so_far=shared.so_far)


def own_query(query: Tool, consent: Guard, sharing: SecretSharing, delivery: OutputDelivery) -> Tool:
    """Return ``query_data`` for the user; its results are shared like those of commands."""
    return secrets(sharing)(_titled(output(consent(query), delivery), "sql>", "sql"))


def _titled(tool: Tool, sign: str = "$", about: str = "command") -> Tool:
    """Return ``tool`` with results that begin with the command, which the model has not seen."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        result = await tool.run(args, call)
        where = f"@{args['source']} " if args.get("source") else ""
        return replace(result, text=f"{sign} {where}{args[about]}\n{result.text}")

    return replace(tool, run=run)


def _interactive(command: str) -> tuple[str, str] | None:
    """Return a message and a hint if a part of ``command`` needs a keyboard or the whole screen."""
    for each in expand_script(command).commands:
        words = [word.text or "" for word in each.argv]
        name = words[0].rsplit("/", 1)[-1] if words else ""
        if name in PAGERS:
            return f"{name} needs a keyboard of its own, and the output is shown here in full.", f"Leave {name} out."
        if name in SCREENS and not any(word.startswith(BATCH) for word in words[1:]):
            return f"{name} needs the whole terminal, and ba has it.", ELSEWHERE
        if name in PROMPTING and len(words) == 1 and not each.incoming and not each.wrappers:
            return f"{name} waits for input from a keyboard, and there is none here.", ELSEWHERE
    return None
