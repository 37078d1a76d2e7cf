"""Clouds that serve the models of others: what each needs before it can be asked. No SDK is imported here.

The variables are those of the vendors' SDKs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.errors import AuthFailed, BaError, UsageError
from ba_tui.core.values import frozen
from ba_tui.providers.faults import ModelService

if TYPE_CHECKING:
    from ba_tui.providers.credentials import Endpoint

SEE = "See ba guide clouds."
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")


@frozen
class Cloud:
    """``needs`` are variables that must be set, one of each tuple; ``address`` those that stand in for a base_url."""

    name: str
    cure: str
    """What to do when the credentials are refused."""
    variable: str = ""
    """Where a key is, if there can be one."""
    package: str = ""
    """The module that must be installed; the extra of this package has the name of the kind."""
    needs: tuple[tuple[str, ...], ...] = ()
    address: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Variables of which one holds what proves who asks, unless a key is saved; empty where there are other ways."""

    def service(self, endpoint: Endpoint, model: str) -> ModelService:
        """What errors call it."""
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
"""By the kind of the provider."""


def lacking(kind: str, url: str | None, key: str | None, env: Mapping[str, str] = os.environ) -> BaError | None:
    """What keeps the cloud from being asked, as far as can be told without asking; ``key`` is the one that is known."""
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
    """The vendor's own name of a model: Bedrock writes ``us.anthropic.claude-…``, also behind an ARN."""
    return model.rpartition("anthropic.")[2] if kind == "bedrock" else model


def _has_profiles(env: Mapping[str, str]) -> bool:
    """Whether the profiles of AWS may name a region."""
    return Path(env.get("AWS_CONFIG_FILE") or Path.home() / ".aws" / "config").exists()


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
