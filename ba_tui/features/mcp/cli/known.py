"""The servers of a folder as the command line sees them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import folder_of, load
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import did_you_mean
from ba_tui.resources import Places, places, project_root

if TYPE_CHECKING:
    from ba_tui.settings.layers import Loaded
    from ba_tui.settings.mcp.found import FoundServers
    from ba_tui.settings.mcp.servers import ConfiguredServer

Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name, as `ba mcp list` shows it.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


class KnownServers:
    """What counts in the folder ``cwd``, by default the current one."""

    def __init__(self, cwd: Path | None) -> None:
        from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415 - --help must not pay for the settings
        from ba_tui.providers.credentials import TOKENS  # noqa: PLC0415
        from ba_tui.settings.mcp.found import ServerPlaces, found_servers  # noqa: PLC0415

        self.folder = folder = folder_of(cwd)
        self.where: Places = places()
        self.root = project_root(folder)
        self.loaded: Loaded = load(folder)
        self.trusted = Trust(self.where).trusted(self.root)
        profiles = self.loaded.settings.providers.values()
        withheld = TOKENS.union(each.api_key_env for each in profiles if each.api_key_env)
        at = ServerPlaces(self.where, self.root, self.trusted, withheld)
        self.found: FoundServers = found_servers(self.loaded, at)

    def get(self, name: str) -> ConfiguredServer:
        """Raises UsageError when there is no server ``name``."""
        if server := self.found.find(name):
            return server
        names = [each.name for each in self.found.servers]
        hint = f"Servers: {', '.join(names)}." if names else "Add one: ba mcp add --help"
        raise UsageError(f"There is no MCP server {name!r}{did_you_mean(name, names) or '.'}", hint)

    def usable(self, name: str) -> ConfiguredServer:
        """The server ``name``, which can be connected to. Raises UsageError when it can't."""
        server = self.get(name)
        if not server.config.trusted:
            raise UsageError(f"{name} belongs to this folder, which is not trusted.", "Review it, then run: ba trust")
        if server.config.trouble:
            raise UsageError(f"{name} can't be used: {server.config.trouble}.", f"It stands in {server.config.source}.")
        return server
