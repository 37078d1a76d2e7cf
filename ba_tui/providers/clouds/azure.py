"""Azure OpenAI: OpenAI's format at a resource of one's own. A model is the name of a deployment."""

from __future__ import annotations

from ba_tui.providers.clouds.needs import CLOUDS
from ba_tui.providers.credentials import BoundKey, Endpoint, azure_endpoint
from ba_tui.providers.faults import ModelService
from ba_tui.providers.openai_compat import OpenAIProvider


class AzureProvider(OpenAIProvider):
    """Raises UsageError: there is no address, or no connection can be set up."""

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[Endpoint, ModelService]:
        endpoint = azure_endpoint(key, url)
        return endpoint, CLOUDS["azure"].service(endpoint, self._model.name)
