"""Providers by name. The one place that imports vendor files, each when a model of its kind is first asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.exchanges import Recorder
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider
from ba_tui.providers.access import DEMO, ProviderAccess
from ba_tui.providers.clouds.needs import CLOUDS, lacking
from ba_tui.providers.local.model_files import lacking_library
from ba_tui.providers.text_calls.detecting import Detecting
from ba_tui.providers.transfers import Transfer
from ba_tui.resources import bundled
from ba_tui.settings import Settings

if TYPE_CHECKING:
    from ba_tui.providers.tokens.exact import ExactCounts


def provider_for(
    info: ModelInfo, settings: Settings, access: ProviderAccess, recorder: Recorder | None = None
) -> Provider:
    """The provider of a model, however the model calls tools; ``recorder`` keeps what it sends and receives. Imports
    what its vendor needs.

    Raises:
        AuthFailed: there is no key. UsageError: a script can't be read.
    """
    provider, profile = vendor_for(info, settings, access, recorder), access.profile(info)
    if profile.kind == "scripted":
        return provider
    from ba_tui.providers.tokens.usage import UsageEstimator  # noqa: PLC0415 - not for scripted models

    return UsageEstimator(provider if profile.kind == "local" else _calling(provider, info, access))


def _calling(provider: Provider, info: ModelInfo, access: ProviderAccess) -> Provider:
    """Return ``provider`` as the model calls tools."""
    if info.tools == "native":
        return provider
    if info.tools == "auto":
        return Detecting(provider, access.formats)
    from ba_tui.providers.text_calls.forms import as_form  # noqa: PLC0415 - most models never need it
    from ba_tui.providers.text_calls.text_tools import TextTools  # noqa: PLC0415

    return TextTools(provider, as_form(info.tools, info))


def vendor_for(
    info: ModelInfo, settings: Settings, access: ProviderAccess, recorder: Recorder | None = None
) -> Provider:
    """The provider of a model as its vendor has it: tools are called natively. Raises as ``provider_for``."""
    profile = access.profile(info)
    if profile.kind == "scripted":
        from ba_tui.providers.script_files import read_script  # noqa: PLC0415
        from ba_tui.providers.scripted import ScriptedProvider  # noqa: PLC0415

        chapter = bundled("config") / "demo" / "scripts" / f"{Path(info.name).name}.yaml"
        return ScriptedProvider(read_script(chapter if info.provider == DEMO else Path(info.name)), info)
    key, url = access.key(info.provider), profile.base_url
    transfer = Transfer(settings.request_timeout, recorder)
    options: dict[str, Any] = {}
    if settings.max_output_tokens:
        options["max_tokens"] = min(settings.max_output_tokens, info.max_output)
    if settings.temperature is not None and info.temperature:
        options["temperature"] = settings.temperature
    if settings.effort and info.thinking:
        options |= _effort(settings.effort, profile.format)
    if profile.kind in CLOUDS and (lack := lacking(profile.kind, url, key.value if key else None)):
        raise lack
    if profile.kind == "local":
        if lack := lacking_library():
            raise UsageError(lack)
        from ba_tui.providers.local.provider import LocalProvider  # noqa: PLC0415

        return LocalProvider(info, access.local, settings.local, options, transfer)
    if profile.kind == "anthropic":
        from ba_tui.providers.anthropic import AnthropicProvider  # noqa: PLC0415

        return AnthropicProvider(info, api_key=key, base_url=url, options=options, transfer=transfer)
    if profile.kind == "azure":
        from ba_tui.providers.clouds.azure import AzureProvider  # noqa: PLC0415

        return AzureProvider(info, api_key=key, base_url=url, options=options, transfer=transfer)
    if profile.kind in CLOUDS:
        from ba_tui.providers.clouds.claude import CloudProvider  # noqa: PLC0415

        return CloudProvider(profile.kind, info, api_key=key, base_url=url, options=options, transfer=transfer)
    from ba_tui.providers.openai_compat import OpenAIProvider  # noqa: PLC0415

    if access.tells_progress(profile):
        options["return_progress"] = True
    return OpenAIProvider(info, api_key=key, base_url=url, options=options, transfer=transfer)


def _effort(effort: str, format: str) -> dict[str, Any]:
    return {"output_config": {"effort": effort}} if format == "anthropic" else {"reasoning_effort": effort}


def exact_counts(model: str, url: str, prepared: Callable[[], tuple[Settings, ProviderAccess]]) -> ExactCounts:
    """Counts by the endpoint ``url``, with the key of the model's provider. Settings are read at the first count."""
    # Here, because its import can take longer than anybody waits for a count.
    from ba_tui.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - not everybody's
    from ba_tui.providers.tokens.exact import ExactCounts  # noqa: PLC0415

    async def ask(request: ModelRequest) -> int:
        settings, access = prepared()
        info = access.model(model)
        provider = vendor_for(info, settings, access)
        try:
            if not isinstance(provider, AnthropicProvider):
                raise UsageError(f"{info.id} has no endpoint that counts", "Take exact_counting_api out of its entry.")
            return await provider.count_tokens(request, url)
        finally:
            await provider.close()

    return ExactCounts(ask)
