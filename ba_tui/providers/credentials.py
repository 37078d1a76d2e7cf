"""The endpoint of a request and its credentials by the rules of the vendors' SDKs, of which none is imported; clouds'
requirements. tests/providers/test_sdk_contract.py compares the rules with theirs."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ba_tui import __version__
from ba_tui.core.errors import AuthFailed, BaError, UsageError
from ba_tui.core.values import frozen
from ba_tui.providers.faults import ModelService, check_url

if TYPE_CHECKING:
    import httpx2


NO_KEY = "none"
"""Sent in place of a key: servers of the user's own require none."""
ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2026-10-21"
"""The version of the Messages API that ba uses."""
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
"""Variables with credentials other than the providers' keys."""
_SECRET = frozenset({"authorization", "x-api-key", "api-key"})
"""Custom headers that are credentials."""


@frozen
class BoundKey:
    """A key and the one address that it is for; None: the vendor's. ``withheld``: a project's, so none is sent."""

    value: str = field(repr=False)
    address: str | None = None
    withheld: bool = False

    def sent_to(self, url: str | None) -> str:
        """Return the key for ``url``. Raises AuthFailed for another host, port or scheme, UsageError."""
        for each in (self.address, url):
            if each:
                check_url(each)
        if _origin(self.address) != _origin(url):
            where = urlsplit(url or "").netloc or "the vendor"
            raise AuthFailed(f"This API key is not for {where}, so ba sent nothing there.", OTHER_ADDRESS)
        return self.value


WITHHELD = BoundKey("", withheld=True)
"""Used in place of a key for a provider that a project defines."""


def _origin(url: str | None) -> tuple[str, str, int | None] | None:
    if not url:
        return None
    parts = urlsplit(url)
    return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme.lower())


@frozen
class KeyedEndpoint:
    """An address and the ``headers`` of each request to it; ``secret`` is the key or token among them."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(default="", repr=False)
    auth: httpx2.Auth | None = None
    """Signs each request when there is no plain key."""
    close: Callable[[], Awaitable[None]] | None = None
    """Closes the connections of ``auth``."""


def of_environment(url: str | None, variable: str) -> bool:
    """Whether ``url`` is the endpoint of the environment, for which alone the environment's credentials are."""
    return not url or url == os.environ.get(variable, "").strip()


def anthropic_endpoint(key: BoundKey | None, url: str | None) -> KeyedEndpoint | None:
    """Return the endpoint for ``key``, else for the environment's credentials; None where only the SDK's credential
    chain may find some.

    Raises:
        UsageError: ``url`` is no web address. AuthFailed: ``key`` is for another one.
    """
    if key and key.withheld:
        plain = _layered(_JSON, {"anthropic-version": ANTHROPIC_VERSION}, _bearer(NO_KEY))
        return KeyedEndpoint(_checked(url or ""), plain)
    own = of_environment(url, "ANTHROPIC_BASE_URL")
    secret = (key.sent_to(url) if key else "") or (_environment_token() if own else NO_KEY)
    if not secret:
        return None
    headers = anthropic_headers(_bearer(secret), own=own)
    return KeyedEndpoint(_checked(url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL), headers, secret)


def anthropic_headers(
    credentials: Mapping[str, str], *, own: bool = True, version: str = ANTHROPIC_VERSION
) -> dict[str, str]:
    """Return the headers of requests to the Messages API. ``own``: they go to the endpoint of the environment."""
    versioned = {"anthropic-version": version} if version else {}
    return _layered(_JSON, versioned, credentials, _custom("ANTHROPIC_CUSTOM_HEADERS", own))


def anthropic_chain() -> bool:
    """Whether the SDK's chain could find credentials: a profile, or the identity of a workload."""
    env = os.environ
    federated = all(env.get(name) for name in _FEDERATION) and any(env.get(name) for name in _IDENTITY)
    if env.get("ANTHROPIC_PROFILE") or federated:
        return True
    folder = Path(env.get("ANTHROPIC_CONFIG_DIR") or Path.home() / ".config" / "anthropic")
    return (folder / "active_config").exists() or (folder / "configs" / "default.json").exists()


def anthropic_without_key(url: str | None) -> bool:
    """Whether the endpoint ``url`` can be used without a known API key."""
    return of_environment(url, "ANTHROPIC_BASE_URL") and (bool(_environment_token()) or anthropic_chain())


def openai_endpoint(key: BoundKey | None, url: str | None) -> KeyedEndpoint:
    """Return the endpoint for ``key``, else for the environment's credentials; without a ``secret`` when there are
    none.

    Raises:
        UsageError: ``url`` is no web address. AuthFailed: ``key`` is for another one.
    """
    if key and key.withheld:
        return KeyedEndpoint(_checked(url or ""), _layered(_JSON, _bearer(NO_KEY)))
    own = of_environment(url, "OPENAI_BASE_URL")
    secret = (key.sent_to(url) if key else "") or (os.environ.get("OPENAI_API_KEY") if own else "") or ""
    billed = {name: os.environ[variable] for name, variable in _BILLED.items() if variable in os.environ}
    headers = _layered(_JSON, _bearer(secret or NO_KEY), billed, _custom("OPENAI_CUSTOM_HEADERS", own))
    return KeyedEndpoint(_checked(url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL), headers, secret)


def azure_endpoint(key: BoundKey | None, url: str | None) -> KeyedEndpoint:
    """Return the endpoint of an Azure OpenAI resource: ``url``, else that of the environment, with the API without
    versions.

    Raises:
        UsageError: there is no address, or it is no web address. AuthFailed: ``key`` is for another one.
    """
    known = key.sent_to(url) if key else ""
    named = os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip()
    given = os.environ.get("AZURE_OPENAI_AD_TOKEN", "") if not url or url == named else ""
    # As in OpenAI's SDK, the environment's token has priority over its key.
    token = given if known in {"", os.environ.get("AZURE_OPENAI_API_KEY")} else ""
    base = _checked(url or named)
    if not urlsplit(base).path.strip("/"):
        base = f"{base.rstrip('/')}/openai/v1"
    secret = token or known
    credentials = _bearer(token) if token else {"api-key": secret or NO_KEY}
    # The environment's headers are OpenAI's: their credentials are not for Azure.
    return KeyedEndpoint(base, _layered(_JSON, credentials, _custom("OPENAI_CUSTOM_HEADERS", own=False)), secret)


def _checked(url: str) -> str:
    check_url(url)
    return url


def _environment_token() -> str:
    return os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_AUTH_TOKEN") or ""


def _layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merge headers; later layers win, whatever the case of their names."""
    headers = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    return dict(headers.values())


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _custom(variable: str, own: bool) -> dict[str, str]:
    """Return the headers of ``variable``, one a line; credentials in them are for the environment's endpoint only."""
    lines = (line.partition(":") for line in os.environ.get(variable, "").split("\n") if ":" in line)
    given = {name.strip(): value.strip() for name, _, value in lines}
    return {name: value for name, value in given.items() if own or name.lower() not in _SECRET}


SEE = "See ba guide clouds."
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")


@frozen
class Cloud:
    """A cloud that serves other vendors' models, with the variables of their SDKs. ``needs``: one in each tuple must be
    set; ``address``: variables that replace a base_url."""

    name: str
    cure: str
    """The hint when credentials are refused."""
    variable: str = ""
    """The variable of the key, if there can be one."""
    package: str = ""
    """The module that must be installed; ba's extra of that package has the name of the kind."""
    needs: tuple[tuple[str, ...], ...] = ()
    address: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Variables of which one has credentials, unless a key is saved; empty where there are other ways."""

    def service(self, endpoint: KeyedEndpoint, model: str) -> ModelService:
        """Return its name in errors."""
        return ModelService(self.name, self.variable, endpoint.url, model, endpoint.secret, cure=self.cure)


CLOUDS: Mapping[str, Cloud] = {
    "bedrock": Cloud(
        "Amazon Bedrock",
        "Check AWS_PROFILE, AWS_ACCESS_KEY_ID or AWS_BEARER_TOKEN_BEDROCK, or sign in: aws sso login",
        "AWS_BEARER_TOKEN_BEDROCK",
        "boto3",
        (_REGION,),
    ),
    "vertex": Cloud(
        "Google Vertex AI",
        "Sign in: gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS.",
        "",
        "google.auth",
        (("CLOUD_ML_REGION",), ("ANTHROPIC_VERTEX_PROJECT_ID",)),
    ),
    "foundry": Cloud(
        "Microsoft Foundry",
        "Correct ANTHROPIC_FOUNDRY_API_KEY.",
        "ANTHROPIC_FOUNDRY_API_KEY",
        address=("ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"),
        keys=("ANTHROPIC_FOUNDRY_API_KEY",),
    ),
    "azure": Cloud(
        "Azure OpenAI",
        "Correct AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN.",
        "AZURE_OPENAI_API_KEY",
        address=("AZURE_OPENAI_ENDPOINT",),
        keys=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    ),
}
"""Clouds by the kind of their provider."""


def lacking(kind: str, url: str | None, key: str | None, env: Mapping[str, str] = os.environ) -> BaError | None:
    """Return the error of a missing requirement of a cloud, as far as it is known without a request."""
    cloud = CLOUDS[kind]
    if cloud.package and not _installed(cloud.package):
        package = cloud.package.replace(".", "-")
        return UsageError(f"{cloud.name} needs the package {package}.", f"Run pip install 'ba-tui[{kind}]'. {SEE}")
    for names in cloud.needs:
        if not any(env.get(name) for name in names) and not (names is _REGION and _has_profiles(env)):
            return UsageError(f"{cloud.name} needs {names[0]}, which is not set.", f"Set it: export {names[0]}=… {SEE}")
    if cloud.address and not url and not any(env.get(name) for name in cloud.address):
        cure = f"Set {cloud.address[0]}, or base_url in the settings. {SEE}"
        return UsageError(f"{cloud.name} has no address yet.", cure)
    if cloud.keys and not key and not any(env.get(name) for name in cloud.keys):
        return AuthFailed(f"There is no API key for {cloud.name} yet.", f"Set {cloud.variable}. {SEE}")
    return None


def plain_name(kind: str, model: str) -> str:
    """Return the vendor's own name of a model: Bedrock writes ``us.anthropic.claude-…``, also within an ARN."""
    return model.rpartition("anthropic.")[2] if kind == "bedrock" else model


def _has_profiles(env: Mapping[str, str]) -> bool:
    """Whether the profiles of AWS may name a region."""
    return Path(env.get("AWS_CONFIG_FILE") or Path.home() / ".aws" / "config").exists()


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
