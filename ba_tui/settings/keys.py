"""API keys: from the environment, else the system's keyring, else ``keys.yaml``, which only its owner can read.

A key is never shown, logged or put into config.yaml.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, cast

import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.values import frozen
from ba_tui.resources import Places, exclusive, save_whole
from ba_tui.settings.document import load_mapping
from ba_tui.settings.environment import variables


@frozen
class Key:
    """``source``: the variable, ``keyring``, or the file it came from."""

    value: str = field(repr=False)
    source: str


def read_key(provider: str, variable: str | None, places: Places, env: Mapping[str, str] | None = None) -> Key | None:
    """The API key of a provider; None when there is none. ``variable`` names the environment variable to look in.

    Raises:
        StorageError: ``keys.yaml`` is there and can't be understood.
    """
    if variable and (value := variables(places, env).get(variable, "").strip()):
        return Key(value, variable)
    if value := from_keyring(provider, places):
        return Key(value, "keyring")
    value = load_mapping(places.keys).get(provider)
    return Key(value.strip(), str(places.keys)) if isinstance(value, str) and value.strip() else None


def kept_keys(places: Places) -> tuple[str, ...]:
    """The keys and tokens in ba's own files of keys; none of a file that can't be read. Blocks."""
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
    """``text`` as a key, without the space around it.

    Raises:
        UsageError: it can't be a key. What it holds is not shown.
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


def save_key(provider: str, key: str, places: Places) -> str:
    """Keep ``key`` for later starts; says where it went.

    Raises:
        UsageError: it can't be a key.
        StorageError: it could not be kept.
    """
    key = sound_key(key)
    if into_keyring(provider, key, places):
        return "the system's keyring"
    with exclusive(places.config):
        kept = load_mapping(places.keys) | {provider: key}
        lines = "# API keys. Keep this file private. ba reads the environment and the keyring first.\n"
        save_whole(places.keys, lines + yaml.safe_dump(kept), mode=0o600)
    return str(places.keys)


def _service(places: Places) -> str:
    """A home of its own has keys of its own."""
    return f"ba ({places.home})" if places.home else "ba"


def from_keyring(entry: str, places: Places) -> str:
    """What the keyring keeps as ``entry``; empty for nothing, or without a keyring."""
    return _asked(lambda ring: ring.get_password(_service(places), entry) or "").strip()


def into_keyring(entry: str, secret: str, places: Places) -> bool:
    """Keep ``secret`` as ``entry``; False where there is no keyring that keeps it."""
    _asked(lambda ring: ring.set_password(_service(places), entry, secret) or "")
    # Some back ends take a key and keep nothing, so only reading it back tells.
    return from_keyring(entry, places) == secret


def out_of_keyring(entry: str, places: Places) -> bool:
    """Take ``entry`` out of the keyring; False when it is not in there."""
    if not from_keyring(entry, places):
        return False
    _asked(lambda ring: ring.delete_password(_service(places), entry) or "")
    return not from_keyring(entry, places)


def _asked(question: Callable[[Any], str]) -> str:
    """What the keyring says, when the package is installed and has a real store behind it; else empty."""
    try:
        ring = importlib.import_module("keyring")
        return question(ring) if ring.get_keyring().priority > 0 else ""
    except Exception:  # noqa: BLE001 - back ends raise what they like, and keys.yaml is there for that case
        return ""


def saved_openly(places: Places) -> StorageError | None:
    """What is wrong with the rights of ``keys.yaml``, if others can read it."""
    try:
        rights = places.keys.stat().st_mode & 0o077
    except OSError:
        return None
    return StorageError(f"{places.keys} can be read by other users.", f"chmod 600 {places.keys}") if rights else None
