"""API keys: from the environment, else the system's keyring, else ``keys.yaml``, which only its owner can read.

The tokens of MCP servers are kept alike. A key is never displayed, logged or written to config.yaml.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, cast

import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.text.json_text import read_object
from ba_tui.core.values import frozen
from ba_tui.resources import UserFolders, exclusive, save_whole
from ba_tui.settings.document import load_mapping
from ba_tui.settings.environment import variables


@frozen
class Key:
    """An API key. ``source``: the variable, ``keyring``, or the file."""

    value: str = field(repr=False)
    source: str


def read_key(
    provider: str, variable: str | None, places: UserFolders, env: Mapping[str, str] | None = None
) -> Key | None:
    """Return the API key of a provider, or None. ``variable`` is the name of its environment variable.

    Raises:
        StorageError: ``keys.yaml`` exists but can't be parsed.
    """
    if variable and (value := variables(places, env).get(variable, "").strip()):
        return Key(value, variable)
    if value := from_keyring(provider, places):
        return Key(value, "keyring")
    value = load_mapping(places.keys).get(provider)
    return Key(value.strip(), str(places.keys)) if isinstance(value, str) and value.strip() else None


def kept_keys(places: UserFolders) -> tuple[str, ...]:
    """Return the keys and tokens in ba's own key files, skipping unreadable ones. Blocks."""
    found: list[str] = []
    for path in (places.keys, places.config / "mcp-tokens.yaml"):
        with suppress(StorageError):
            found += _texts(load_mapping(path))
    return tuple(found)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(cast("dict[Any, Any]", value).values()))
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)


def sound_key(text: str) -> str:
    """Return ``text`` as a key, without surrounding space.

    Raises:
        UsageError: it can't be a key; the message does not show it.
    """
    key = text.strip()
    wrong = (
        "is empty" if not key
        else "contains a line break" if len(key.splitlines()) > 1
        else "contains a space" if any(map(str.isspace, key))
        else "contains a character that is not allowed in a key" if not (key.isascii() and key.isprintable())
        else ""
    )  # fmt: skip
    if wrong:
        raise UsageError(f"The key {wrong}.", "Copy it again, alone and on one line.")
    return key


def save_key(provider: str, key: str, places: UserFolders) -> str:
    """Save ``key`` and return where it was saved.

    Raises:
        UsageError: it can't be a key.
        StorageError: it could not be saved.
    """
    key = sound_key(key)
    if into_keyring(provider, key, places):
        return "the system's keyring"
    with exclusive(places.config):
        kept = load_mapping(places.keys) | {provider: key}
        lines = "# API keys. Keep this file private. ba reads the environment and the keyring first.\n"
        save_whole(places.keys, lines + yaml.safe_dump(kept), mode=0o600)
    return str(places.keys)


def _service(places: UserFolders) -> str:
    """Return the keyring's service name, which differs for each ba home."""
    return f"ba ({places.home})" if places.home else "ba"


def from_keyring(entry: str, places: UserFolders) -> str:
    """Return the secret ``entry`` of the keyring; empty when it does not exist or there is no keyring."""
    return _asked(lambda ring: ring.get_password(_service(places), entry) or "").strip()


def into_keyring(entry: str, secret: str, places: UserFolders) -> bool:
    """Save ``secret`` as ``entry`` in the keyring; return False when that is not possible."""
    _asked(lambda ring: ring.set_password(_service(places), entry, secret) or "")
    # Some back ends accept a key without saving it, so it is read back.
    return from_keyring(entry, places) == secret


def out_of_keyring(entry: str, places: UserFolders) -> bool:
    """Remove ``entry`` from the keyring; return False when it is not there."""
    if not from_keyring(entry, places):
        return False
    _asked(lambda ring: ring.delete_password(_service(places), entry) or "")
    return not from_keyring(entry, places)


def _asked(question: Callable[[Any], str]) -> str:
    """Query the keyring; empty when the package is not installed or has no real back end."""
    try:
        ring = importlib.import_module("keyring")
        return question(ring) if ring.get_keyring().priority > 0 else ""
    except Exception:  # noqa: BLE001 - back ends raise what they like, and keys.yaml is there for that case
        return ""


def saved_openly(places: UserFolders) -> StorageError | None:
    """Return an error when other users can read ``keys.yaml``, else None."""
    try:
        rights = places.keys.stat().st_mode & 0o077
    except OSError:
        return None
    return StorageError(f"{places.keys} can be read by other users.", f"chmod 600 {places.keys}") if rights else None


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
