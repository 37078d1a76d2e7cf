"""``${NAME}``, ``${NAME:-default}`` and ``${keyring:NAME}`` in the settings of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.fields import web_address
from ba_tui.settings.sections.mcp import ServerSettings

REFERENCE = regex(r"\$\{(?:keyring:(?P<entry>[\w.-]+)|(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?)\}")
KEYRING = "keyring:"


@frozen
class Values:
    """Where values come from. ``withheld``: variables that the server may not see; ``entry`` asks the keyring."""

    variables: Mapping[str, str]
    entry: Callable[[str], str] = lambda name: ""
    withheld: frozenset[str] = frozenset()


class Unresolved(ValueError):
    """A reference has no value; the text is a sentence about it."""


def no_keyring(entry: str) -> str:
    """For servers that the person did not write down themselves. Raises Unresolved."""
    raise Unresolved(f"a project's server can't read your keyring, as it would with ${{keyring:{entry}}}")


def expanded(settings: ServerSettings, values: Values) -> ServerSettings:
    """Return ``settings`` with the values of all references.

    Raises:
        Unresolved: one has none, or what comes out can't be used.
    """

    def text(raw: str) -> str:
        return REFERENCE.sub(lambda match: _value(match["name"], match["entry"], match["default"], values), raw)

    url = text(settings.url) if settings.url else None
    if url is not None:
        try:
            web_address(url)
        except ValueError:
            raise Unresolved("its url is no address that begins with http:// or https://") from None
    headers = {name: text(value) for name, value in settings.headers.items()}
    for name, value in headers.items():
        if not name.isascii() or not value.isprintable() or not name.strip():
            raise Unresolved(f"its header {name!r} holds a character that headers can't have")
    oauth = replace(settings.oauth, client_secret=text(settings.oauth.client_secret))
    return replace(
        settings,
        command=text(settings.command),
        args=tuple(text(each) for each in settings.args),
        env={name: text(value) for name, value in settings.env.items()},
        cwd=Path(text(str(settings.cwd))) if settings.cwd else None,
        url=url,
        headers=headers,
        oauth=oauth,
    )


def _value(name: str | None, entry: str | None, default: str | None, values: Values) -> str:
    if entry:
        if found := values.entry(entry):
            return found
        raise Unresolved(f"the keyring has no entry {entry}; save it: keyring set ba {entry}")
    if name in values.withheld:
        raise Unresolved(f"a project's server may not have {name}, which is a key of yours for models")
    if found := values.variables.get(str(name), ""):
        return found
    if default is not None:
        return default
    if str(name) in values.variables:
        return ""
    raise Unresolved(f"the environment variable {name} is not set")


def is_reference(text: str) -> bool:
    """Whether ``text`` is references and nothing that could be a secret itself."""
    left = REFERENCE.sub("", text)
    return REFERENCE.search(text) is not None and not left.removeprefix("Bearer").strip() and ":-" not in text
