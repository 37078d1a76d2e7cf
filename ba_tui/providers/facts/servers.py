"""Whom to ask for models: the addresses and headers of a server. What it is asked is ``asking``'s business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal
from urllib.parse import urlsplit

from ba_tui.core.values import frozen
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.faults import ModelService, check_key

ANTHROPIC, OPENAI = "https://api.anthropic.com", "https://api.openai.com/v1"
VERSION = "2023-06-01"


@frozen
class ModelServer:
    """Whom to ask: the wire format, its address (the vendor's own when empty), its key and the key's variable."""

    kind: Literal["anthropic", "openai"]
    url: str = ""
    key: BoundKey | None = field(default=None, repr=False)
    variable: str = ""

    @property
    def base(self) -> str:
        """Up to and including ``/v1``."""
        url = (self.url or (ANTHROPIC if self.kind == "anthropic" else OPENAI)).rstrip("/")
        return f"{url}/v1" if self.kind == "anthropic" and not url.endswith("/v1") else url

    @property
    def models(self) -> str:
        """The address of its list of models; Anthropic's would be a page of 20."""
        return f"{self.base}/models?limit=1000" if self.kind == "anthropic" else f"{self.base}/models"

    @property
    def root(self) -> str:
        return self.base.removesuffix("/v1")

    @property
    def host(self) -> str:
        return self.service().host

    @property
    def hostname(self) -> str:
        """Without its port; empty for the vendor's own."""
        return (urlsplit(self.url).hostname or "") if self.url else ""

    @property
    def own(self) -> bool:
        """Whether it is a server of the person's own or their network's: nobody else is reached without TLS."""
        return self.base.startswith("http://")

    @property
    def tells(self) -> bool:
        """OpenAI itself tells names and nothing else."""
        return self.base != OPENAI

    def service(self, model: str = "") -> ModelService:
        secret = self.key.value if self.key else ""
        return ModelService(ModelService("", "", self.base, "").host, self.variable, self.base, model, secret)

    def headers(self) -> Mapping[str, str]:
        """Raises AuthFailed for a key that is for another address, or can't be sent, such as one with a line break."""
        plain = {"accept": "application/json"}
        if not self.key or self.key.withheld:
            return plain
        secret = self.key.sent_to(self.url)
        check_key(secret, self.variable)
        if self.kind == "anthropic":
            return {**plain, "x-api-key": secret, "anthropic-version": VERSION}
        return {**plain, "authorization": f"Bearer {secret}"}
