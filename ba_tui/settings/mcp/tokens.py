"""Tokens of MCP servers: in the system's keyring, else in a file that only its owner can read. None is ever shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import yaml

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.resources import Places, exclusive, save_whole
from ba_tui.settings.document import load_mapping
from ba_tui.settings.keys import from_keyring, into_keyring, out_of_keyring

FILE = "mcp-tokens.yaml"
HEADER = "# Tokens of MCP servers. Keep this file private. `ba mcp logout NAME` removes one.\n"


class TokenStore:
    """All of it reads or writes files or the keyring: call it off the loop."""

    def __init__(self, where: Places) -> None:
        self._where, self.path = where, where.config / FILE

    def read(self, config: ServerConfig) -> dict[str, Any]:
        """What is kept for the server at its present address; empty for nothing. Raises StorageError."""
        entry = entry_of(config)
        text = from_keyring(entry, self._where) or load_mapping(self.path).get(entry)
        try:
            data: Any = json.loads(text) if isinstance(text, str) else {}
        except (ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", data) if isinstance(data, dict) else {}

    def save(self, config: ServerConfig, data: dict[str, Any]) -> str:
        """Keep ``data``, which JSON can hold; says where it went. Raises StorageError."""
        entry, text = entry_of(config), json.dumps(data)
        if into_keyring(entry, text, self._where):
            return "the system's keyring"
        self._write(entry, text)
        return str(self.path)

    def drop(self, config: ServerConfig) -> bool:
        """Forget what is kept; False when there was nothing. Raises StorageError."""
        entry = entry_of(config)
        kept = entry in load_mapping(self.path)
        if kept:
            self._write(entry, None)
        return out_of_keyring(entry, self._where) or kept

    def _write(self, entry: str, text: str | None) -> None:
        with exclusive(self.path.parent):
            rest = {name: value for name, value in load_mapping(self.path).items() if name != entry}
            kept = rest if text is None else {**rest, entry: text}
            save_whole(self.path, HEADER + (yaml.safe_dump(kept) if kept else ""), mode=0o600)


def entry_of(config: ServerConfig) -> str:
    """The name of what is kept for a server: of this address alone, so that no other one gets its tokens."""
    return f"mcp {config.name} {hashlib.sha256(config.url.encode()).hexdigest()[:16]}"
