"""Tokens of MCP servers, in the system's keyring or in a file that only its owner can read; never displayed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import yaml

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.text.json_text import read_object
from ba_tui.resources import UserFolders, exclusive, save_whole
from ba_tui.settings.document import load_mapping
from ba_tui.settings.keys import from_keyring, into_keyring, out_of_keyring

FILE = "mcp-tokens.yaml"
HEADER = "# Tokens of MCP servers. Keep this file private. `ba mcp logout NAME` removes one.\n"


class TokenStore:
    """The store of tokens. All methods use files or the keyring: call them off the event loop."""

    def __init__(self, where: UserFolders) -> None:
        self._where, self.path = where, where.config / FILE

    def read(self, config: ServerConfig) -> dict[str, Any]:
        """Return the saved data of the server at its current address; empty without any. Raises StorageError."""
        entry = entry_of(config)
        text = from_keyring(entry, self._where) or load_mapping(self.path).get(entry)
        return (read_object(text) if isinstance(text, str) else None) or {}

    def save(self, config: ServerConfig, data: dict[str, Any]) -> str:
        """Save ``data`` (JSON) and return where it was saved. Raises StorageError."""
        entry, text = entry_of(config), json.dumps(data)
        if into_keyring(entry, text, self._where):
            return "the system's keyring"
        self._write(entry, text)
        return str(self.path)

    def drop(self, config: ServerConfig) -> bool:
        """Remove the saved data; return False when there was none. Raises StorageError."""
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
    """Return the entry's name, which includes the address so that no other server receives the tokens."""
    return f"mcp {config.name} {hashlib.sha256(config.url.encode()).hexdigest()[:16]}"
