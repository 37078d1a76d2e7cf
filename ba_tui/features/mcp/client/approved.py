"""Approved tool definitions and the newest listing of each server, kept between sessions.

One file per server, named by a hash of its identity: a different command, address, source file or project is a
different server.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.ports.mcp import PromptArgument, RemotePrompt, RemoteResource, RemoteTool, ServerConfig
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.mcp.client.definitions import changed_parts
from ba_tui.resources import save_whole

NEW = "it is new since you approved the tools of this server"


@frozen
class KnownTools:
    """The stored state of a server. ``approved`` by the server's own tool names; ``listed``: the present listing;
    ``title``, ``protocol``, ``resources`` and ``prompts`` from the newest connection; ``left_out``: a line for each
    item that ba can't use. ``met``: the server was listed before, perhaps without tools."""

    approved: Mapping[str, RemoteTool] = field(default_factory=dict[str, RemoteTool])
    listed: tuple[RemoteTool, ...] = ()
    title: str = ""
    protocol: str = ""
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    met: bool = False
    left_out: tuple[str, ...] = ()

    def with_listing(self, listed: tuple[RemoteTool, ...]) -> KnownTools:
        """Return the state with a new listing. The first listing counts as approved, because the user has just added
        the server; if it is empty, nothing is approved, and tools added later are new."""
        if not self.met and not self.approved:
            return replace(self, approved={tool.name: tool for tool in listed}, listed=listed, met=True)
        # Keep the same object if nothing changed: calls compare all definitions, and comparing equal objects is free.
        same = (old if (old := self.approved.get(tool.name)) == tool else tool for tool in listed)
        return replace(self, listed=tuple(same), met=True)

    def with_approved(self, name: str) -> KnownTools:
        """Return the state with the present definition of a tool approved."""
        found = next((tool for tool in self.listed if tool.name == name), None)
        return replace(self, approved={**self.approved, name: found}) if found else self

    def offer_changes(self, later: KnownTools) -> tuple[str, ...]:
        """Return a line for each prompt and resource that is new or changed in ``later``."""
        if not self.met:
            return ()
        pairs = (
            ("prompt", {each.name: each for each in self.prompts}, {each.name: each for each in later.prompts}),
            ("resource", {each.uri: each for each in self.resources}, {each.uri: each for each in later.resources}),
        )
        return tuple(
            f"{kind} {one_line(name, 80)}: {'changed since' if name in before else 'new since'} the last listing"
            for kind, before, now in pairs
            for name, each in now.items()
            if before.get(name) != each
        )

    def judged(self) -> tuple[RemoteTool, ...]:
        """Return the listing, with each tool marked that differs from its approved definition."""
        return tuple(self._judged(tool) for tool in self.listed)

    def _judged(self, tool: RemoteTool) -> RemoteTool:
        if tool.standing == "refused":
            return tool
        old = self.approved.get(tool.name)
        if old is None:
            return replace(tool, standing="changed", trouble=NEW)
        parts = "" if old is tool or old == tool else changed_parts(old, tool)
        if not parts:
            return tool
        return replace(tool, standing="changed", trouble=f"its {parts} changed since you approved it")


class KnownServers:
    """The stored states in ``folder``; None stores nothing. ``root``: the project of the session. Blocks."""

    def __init__(self, folder: Path | None, root: Path | None = None) -> None:
        self._folder = folder
        self._root = root

    def read(self, config: ServerConfig) -> KnownTools:
        """Return the stored state of a server; an empty one if the file is missing or unreadable."""
        if self._folder is None:
            return KnownTools()
        try:
            data = cast("dict[str, Any]", json.loads(self._stored(config).read_bytes()))
            approved = {name: _tool(raw) for name, raw in cast("dict[str, Any]", data["approved"]).items()}
            # A tool that equals its approved definition is stored by name only.
            each = cast("list[Any]", data["listed"])
            listed = tuple(approved[raw] if isinstance(raw, str) else _tool(raw) for raw in each)
            resources = tuple(RemoteResource(**raw) for raw in cast("list[Any]", data["resources"]))
            prompts = tuple(_prompt(raw) for raw in cast("list[Any]", data["prompts"]))
            title, protocol = str(data["title"]), str(data["protocol"])
            # Files of older versions have no such lines.
            left_out = tuple(map(str, data.get("left_out", ())))
            return KnownTools(approved, listed, title, protocol, resources, prompts, met=True, left_out=left_out)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return KnownTools()

    def save(self, config: ServerConfig, known: KnownTools) -> None:
        """Store the state, readable only for the owner. Raises StorageError."""
        if self._folder is None:
            return
        data = {
            "server": config.name,
            "title": known.title,
            "protocol": known.protocol,
            "approved": {name: asdict(tool) for name, tool in known.approved.items()},
            "listed": [tool.name if known.approved.get(tool.name) == tool else asdict(tool) for tool in known.listed],
            "resources": [asdict(each) for each in known.resources],
            "prompts": [asdict(each) for each in known.prompts],
            "left_out": known.left_out,
        }
        save_whole(self._path(config), json.dumps(data, ensure_ascii=False), mode=0o600)

    def _path(self, config: ServerConfig) -> Path:
        assert self._folder
        return self._folder / f"{identity(config, self._root)}.json"

    def _stored(self, config: ServerConfig) -> Path:
        """Return the server's file; if it is missing, that of an older version, whose name did not include the source
        file."""
        path = self._path(config)
        assert self._folder
        return path if path.exists() else self._folder / f"{_hashed(_program(config))}.json"


def identity(config: ServerConfig, root: Path | None) -> str:
    """Return the identity of a server: a hash of its program or address and of its source file, without values that may
    be secret. A server of a project also depends on its ``root``: ``server.js`` is a different program in another
    project."""
    of = str(root or "") if config.scope in {"project", "local"} else ""
    return _hashed([*_program(config), config.scope, config.source, of])


def _program(config: ServerConfig) -> list[str]:
    return [config.name, config.transport, *config.command, config.folder, config.url]


def _hashed(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _prompt(raw: Any) -> RemotePrompt:
    given = cast("dict[str, Any]", raw)
    arguments = tuple(PromptArgument(**each) for each in cast("list[Any]", given["arguments"]))
    return RemotePrompt(str(given["name"]), str(given["description"]), arguments)


def _tool(raw: Any) -> RemoteTool:
    given = cast("dict[str, Any]", raw)
    return RemoteTool(
        str(given["name"]),
        str(given["full_name"]),
        str(given["title"]),
        str(given["description"]),
        dict(given["schema"]),
        bool(given["read_only"]),
        bool(given["destructive"]),
        bool(given["idempotent"]),
        bool(given["open_world"]),
        "refused" if given["standing"] == "refused" else "on",
        str(given["trouble"]),
    )
