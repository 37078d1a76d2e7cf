"""What the doctor says of MCP servers: which there are, and what is wrong with how they are configured."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.text.wording import count
from ba_tui.resources import Places
from ba_tui.settings.layers import Loaded
from ba_tui.settings.mcp.found import ServerPlaces, found_servers

NAME = "MCP servers"


LeftOut: TypeAlias = Callable[[ServerConfig], Sequence[str]]
"""Gives a line for each thing that a server offered the last time and that ba can't use."""


def server_checks(
    loaded: Loaded, where: Places, root: Path, trusted: Callable[[Path], bool], left_out: LeftOut
) -> Iterator[CheckResult]:
    """Look at the configuration, and at what is remembered of the servers: ``ba mcp test`` connects."""
    found = found_servers(loaded, ServerPlaces(where, root, trusted(root)))
    used = [each for each in found.servers if not each.off]
    missing = [
        f"{each.name}: there is no program {each.config.command[0]!r}"
        for each in used
        if each.config.command and not each.config.trouble and shutil.which(each.config.command[0]) is None
        if "/" not in each.config.command[0]
    ]
    wrong = [*found.problems, *missing]
    text = f"{count(len(found.servers), 'server')} configured, {len(used)} used" if found.servers else "none"
    if wrong:
        lines = "\n".join([*wrong, *found.remarks])
        yield CheckResult(NAME, "warn", f"{text}; {len(wrong)} can't be used", "Correct them: ba mcp list", lines)
    else:
        yield CheckResult(NAME, "ok", text, detail="\n".join(found.remarks))
    for each in used:
        if lines := left_out(each.config):
            said = f"{each.name}: {count(len(lines), 'thing')} that it offers can't be used"
            fix = f"Report it to the maker of the server; see ba mcp test {each.name}"
            yield CheckResult(NAME, "warn", said, fix, "\n".join(lines))
    for path in where.secrets[1:]:
        if path.is_file() and path.stat().st_mode & 0o077:
            yield CheckResult(NAME, "fail", f"{path} can be read by other users", f"chmod 600 {path}")
