"""How a provider is asked for its own count of tokens, out of settings. Estimates stand in words."""

from __future__ import annotations

from pathlib import Path

from ba_tui.assembly.models import provider_for
from ba_tui.core.errors import UsageError
from ba_tui.core.provider import ModelRequest
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import load_catalog
from ba_tui.providers.tokens_exact import ExactCounts
from ba_tui.resources import bundled, places, project_root, there
from ba_tui.settings import load_settings


def exact_counts(model: str, cwd: Path, url: str) -> ExactCounts:
    """Counts of ``url``, with the key of the model's provider."""
    # Here, because its import can take longer than anybody waits for a count.
    from ba_tui.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - an SDK, and not everybody's

    async def ask(request: ModelRequest) -> int:
        where, root = places(), project_root(cwd)
        loaded = load_settings({}, where, root, trusted=Trust(where).trusted(root))
        files = [bundled("config") / "models.yaml", where.config / "models.yaml"]
        access = ProviderAccess(loaded, load_catalog(file for file in files if there(file)), where)
        info = access.model(model)
        provider = provider_for(info, loaded.settings, access)
        try:
            if not isinstance(provider, AnthropicProvider):
                raise UsageError(f"{info.id} has no endpoint that counts", "Take exact_counting_api out of its entry.")
            return await provider.count_tokens(request, url)
        finally:
            await provider.close()

    return ExactCounts(ask)
