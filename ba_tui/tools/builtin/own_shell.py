"""Shell and queries as the person has them: their words run at once unless a rule denies them, and what is private
stays so.

Which events tell of it, and how the output reaches the model, is core/own_shell.py's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.permissions.secrets.sharing import Sharing
from ba_tui.tools.guards.output import Delivery, output
from ba_tui.tools.guards.secrets import secrets

_EDITORS = ("vi", "vim", "nvim", "nano", "pico", "emacs", "micro", "hx", "helix", "joe", "mcedit", "kak")
_MONITORS = ("top", "htop", "btop", "atop", "mc", "ranger", "nnn", "tig", "lazygit", "watch", "fzf")
SCREENS = frozenset((*_EDITORS, *_MONITORS))
"""Programs that take the whole screen."""
PAGERS = frozenset({"less", "more", "most"})
_SHELLS = ("python", "python3", "ipython", "node", "irb", "bash", "sh", "zsh", "fish", "tmux", "screen")
_CLIENTS = ("ftp", "sftp", "bc", "gdb", "psql", "mysql", "sqlite3", "duckdb")
PROMPTING = frozenset((*_SHELLS, *_CLIENTS))
"""Programs that read from the keyboard when they get no arguments and no input."""
BATCH = ("--version", "--help", "-h", "-b", "-es", "-Es", "--batch", "-batch", "--headless")
"""Options with which a program leaves the screen alone."""
ELSEWHERE = "Run it in another terminal, or press Ctrl+Z, run it there, and come back with fg."


def own_shell(shell: Tool, consent: Guard, sharing: Sharing, delivery: Delivery) -> Tool:
    """``shell`` for the person, with their own ``consent``. What is shared is cleaned and stored as any result is; of a
    private command nothing is stored where a model may look."""
    shared = secrets(sharing)(_titled(output(consent(shell), delivery)))
    private = output(consent(shell))

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        command: str = args["command"]
        if found := _interactive(command):
            return failure("invalid_parameters", found[0], hint=found[1])
        return await (private if call.private else shared).run({"command": command}, call)

    return replace(shell, run=run, so_far=shared.so_far)


def own_query(query: Tool, consent: Guard, sharing: Sharing, delivery: Delivery) -> Tool:
    """``query_data`` for the person; its results are shared as those of commands are."""
    return secrets(sharing)(_titled(output(consent(query), delivery), "sql>", "sql"))


def _titled(tool: Tool, sign: str = "$", about: str = "command") -> Tool:
    """``tool`` whose results begin with what was run, for a model that has not seen it."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        result = await tool.run(args, call)
        where = f"@{args['source']} " if args.get("source") else ""
        return replace(result, text=f"{sign} {where}{args[about]}\n{result.text}")

    return replace(tool, run=run)


def _interactive(command: str) -> tuple[str, str] | None:
    """What to say instead when a part of ``command`` needs a keyboard and a screen of its own, and the hint."""
    from ba_tui.permissions.shell.walk.expansion import expand_script  # noqa: PLC0415 - grammar, not before it is needed

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
