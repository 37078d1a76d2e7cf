"""The user's own commands and queries: they run without a question unless a rule denies them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.permissions.secrets.sharing import SecretSharing
from ba_tui.permissions.shell.walker import expand_script
from ba_tui.tools.guards.output import OutputDelivery, output, secrets

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
