"""An embedder behind an OpenAI-compatible endpoint (``POST /embeddings``), such as a local server or a vendor's.

The key is sent in a header only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import httpx2
import numpy

from ba_tui.core.errors import BaError
from ba_tui.features.memory.engine.embedding import READ, NoEmbedder, Traits
from ba_tui.features.memory.engine.setup import Endpoint
from ba_tui.providers.faults import ModelService, check_key, check_url, from_network, from_response, is_loopback

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors

_VARIABLE = "memory.endpoint.api_key_env"
_SECONDS = 8.0
"""Less than the client waits for one call."""
_LARGEST = 32_000_000
_WORDS = "Memory is searched by words meanwhile."


class EndpointFailed(BaError):
    """The endpoint does not answer. The request is repeated later."""

    kind = "endpoint_failed"


class EndpointEmbedder:
    """Connects with the first text."""

    def __init__(self, endpoint: Endpoint) -> None:
        if not endpoint.model:
            raise NoEmbedder("memory.endpoint.model is not set.", "Name the embedding model of the server.")
        check_url(endpoint.url)
        check_key(endpoint.key, _VARIABLE)
        self._endpoint = endpoint
        self._service = ModelService(
            "The embeddings server", _VARIABLE, endpoint.url, endpoint.model, endpoint.key, vendor=False
        )
        headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        # Ignore proxy variables for addresses of this machine.
        self._client = httpx2.Client(
            follow_redirects=False, timeout=_SECONDS, headers=headers, trust_env=not is_loopback(endpoint.url)
        )
        self._dimensions = 0

    @property
    def traits(self) -> Traits:
        return Traits(self._endpoint.model, self._dimensions)

    def entries(self, texts: Sequence[str]) -> Vectors:
        reply = self._asked([text[:READ] if text.strip() else "-" for text in texts])
        rows = numpy.asarray(reply, numpy.float32)
        self._dimensions = rows.shape[1]
        return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def question(self, text: str) -> Vectors:
        return self.entries([text])[0]

    def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        url = f"{self._endpoint.url.rstrip('/')}/embeddings"
        try:
            response = self._client.post(url, json={"model": self._endpoint.model, "input": list(texts)})
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise _failed(str(from_network(self._service, error))) from None
        if not response.is_success:
            body = response.text[:_LARGEST]
            raise _failed(str(from_response(self._service, response.status_code, response.headers, body)))
        try:
            rows = [_row(each) for each in _in_order(response.json()["data"])]
        except (ValueError, KeyError, TypeError) as error:
            raise _failed(f"{self._service.host} sent no embeddings ({type(error).__name__}).") from None
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise _failed(f"{self._service.host} sent {len(rows)} embeddings for {len(texts)} texts.")
        return rows


def _in_order(data: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(data, key=lambda each: each.get("index", 0))


def _row(given: Mapping[str, Any]) -> list[float]:
    row = [float(each) for each in cast("list[Any]", given["embedding"])]
    if not all(map(math.isfinite, row)):
        raise ValueError("a number is not finite")
    return row


def _failed(what: str) -> EndpointFailed:
    return EndpointFailed(what, _WORDS)
