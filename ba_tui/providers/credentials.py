"""Where requests go and what proves who sends them: a key or token, by the rules that the vendors' SDKs have.

No SDK is imported; tests/providers/test_sdk_contract.py holds these rules to theirs.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ba_tui import __version__
from ba_tui.core.errors import AuthFailed
from ba_tui.core.values import frozen
from ba_tui.providers.faults import check_url

if TYPE_CHECKING:
    import httpx2

NO_KEY = "none"
"""What is sent where there is no key: servers of one's own ask for none."""
ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2026-10-21"
"""The version of the Messages API that is spoken."""
OPENAI_URL = "https://api.openai.com/v1"
_JSON = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"ba/{__version__}"}
_BILLED = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_PORTS = {"http": 80, "https": 443}
OTHER_ADDRESS = "Set base_url of this provider in your own settings: ba config edit."
_FEDERATION = ("ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID")
_IDENTITY = ("ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE")
TOKENS = frozenset(
    {"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN", "AZURE_OPENAI_AD_TOKEN", "BRAVE_API_KEY", "TAVILY_API_KEY"}
)
"""Variables that hold credentials beside the keys of providers."""
_SECRET = frozenset({"authorization", "x-api-key", "api-key"})
"""Custom headers that are credentials themselves."""


@frozen
class BoundKey:
    """An API key of the user's and the one address that it is for, as the user gave it; None for the vendor's own.
    ``withheld``: the address is a project's, so no credentials are sent there."""

    value: str = field(repr=False)
    address: str | None = None
    withheld: bool = False

    def sent_to(self, url: str | None) -> str:
        """The key, for requests to ``url``.

        Raises:
            AuthFailed: it is for another host, port or scheme. UsageError: ``url`` is no web address.
        """
        for each in (self.address, url):
            if each:
                check_url(each)
        if _origin(self.address) != _origin(url):
            where = urlsplit(url or "").netloc or "the vendor"
            raise AuthFailed(f"This API key is not for {where}, so ba sent nothing there.", OTHER_ADDRESS)
        return self.value


WITHHELD = BoundKey("", withheld=True)
"""In place of a key, for a provider that a project defines."""


def _origin(url: str | None) -> tuple[str, str, int | None] | None:
    if not url:
        return None
    parts = urlsplit(url)
    return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme.lower())


@frozen
class Endpoint:
    """``headers`` go with each request to ``url``; ``secret`` is the key or token among them."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(default="", repr=False)
    auth: httpx2.Auth | None = None
    """What signs each request when there is no plain key."""
    close: Callable[[], Awaitable[None]] | None = None
    """Lets go of what ``auth`` holds."""


def of_environment(url: str | None, variable: str) -> bool:
    """Whether ``url`` is the endpoint of the environment, whose credentials are for it and for no other."""
    return not url or url == os.environ.get(variable, "").strip()


def anthropic_endpoint(key: BoundKey | None, url: str | None) -> Endpoint | None:
    """The endpoint for ``key``, else for what the environment holds; None where only the SDK's own chain can tell.

    Raises:
        UsageError: ``url`` is no web address. AuthFailed: ``key`` is for another one.
    """
    if key and key.withheld:
        plain = _layered(_JSON, {"anthropic-version": ANTHROPIC_VERSION}, _bearer(NO_KEY))
        return Endpoint(_checked(url or ""), plain)
    own = of_environment(url, "ANTHROPIC_BASE_URL")
    secret = (key.sent_to(url) if key else "") or (_environment_token() if own else NO_KEY)
    if not secret:
        return None
    headers = anthropic_headers(_bearer(secret), own=own)
    return Endpoint(_checked(url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL), headers, secret)


def anthropic_headers(
    credentials: Mapping[str, str], *, own: bool = True, version: str = ANTHROPIC_VERSION
) -> dict[str, str]:
    """What goes with each request to the Messages API. ``own``: to the endpoint of the environment."""
    versioned = {"anthropic-version": version} if version else {}
    return _layered(_JSON, versioned, credentials, _custom("ANTHROPIC_CUSTOM_HEADERS", own))


def anthropic_chain() -> bool:
    """Whether the chain of the SDK could find credentials: a profile, or the identity of a workload."""
    env = os.environ
    federated = all(env.get(name) for name in _FEDERATION) and any(env.get(name) for name in _IDENTITY)
    if env.get("ANTHROPIC_PROFILE") or federated:
        return True
    folder = Path(env.get("ANTHROPIC_CONFIG_DIR") or Path.home() / ".config" / "anthropic")
    return (folder / "active_config").exists() or (folder / "configs" / "default.json").exists()


def anthropic_without_key(url: str | None) -> bool:
    """Whether the endpoint ``url`` may be asked although no API key is known."""
    return of_environment(url, "ANTHROPIC_BASE_URL") and (bool(_environment_token()) or anthropic_chain())


def openai_endpoint(key: BoundKey | None, url: str | None) -> Endpoint:
    """The endpoint for ``key``, else for what the environment holds; without a ``secret`` where it holds nothing.

    Raises:
        UsageError: ``url`` is no web address. AuthFailed: ``key`` is for another one.
    """
    if key and key.withheld:
        return Endpoint(_checked(url or ""), _layered(_JSON, _bearer(NO_KEY)))
    own = of_environment(url, "OPENAI_BASE_URL")
    secret = (key.sent_to(url) if key else "") or (os.environ.get("OPENAI_API_KEY") if own else "") or ""
    billed = {name: os.environ[variable] for name, variable in _BILLED.items() if variable in os.environ}
    headers = _layered(_JSON, _bearer(secret or NO_KEY), billed, _custom("OPENAI_CUSTOM_HEADERS", own))
    return Endpoint(_checked(url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL), headers, secret)


def azure_endpoint(key: BoundKey | None, url: str | None) -> Endpoint:
    """The endpoint of an Azure OpenAI resource: ``url``, else that of the environment, by the API without versions.

    Raises:
        UsageError: there is no address, or it is no web address. AuthFailed: ``key`` is for another one.
    """
    known = key.sent_to(url) if key else ""
    named = os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip()
    given = os.environ.get("AZURE_OPENAI_AD_TOKEN", "") if not url or url == named else ""
    # As in OpenAI's SDK, the token of the environment comes before its key.
    token = given if known in {"", os.environ.get("AZURE_OPENAI_API_KEY")} else ""
    base = _checked(url or named)
    if not urlsplit(base).path.strip("/"):
        base = f"{base.rstrip('/')}/openai/v1"
    secret = token or known
    credentials = _bearer(token) if token else {"api-key": secret or NO_KEY}
    # What the environment holds is OpenAI's: its credentials are not for Azure.
    return Endpoint(base, _layered(_JSON, credentials, _custom("OPENAI_CUSTOM_HEADERS", own=False)), secret)


def _checked(url: str) -> str:
    check_url(url)
    return url


def _environment_token() -> str:
    return os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_AUTH_TOKEN") or ""


def _layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """All of ``layers``; a later one wins, however its names are spelt."""
    headers = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    return dict(headers.values())


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _custom(variable: str, own: bool) -> dict[str, str]:
    """The headers of ``variable``, one a line. Credentials among them are for the endpoint of the environment only."""
    lines = (line.partition(":") for line in os.environ.get(variable, "").split("\n") if ":" in line)
    given = {name.strip(): value.strip() for name, _, value in lines}
    return {name: value for name, value in given.items() if own or name.lower() not in _SECRET}
