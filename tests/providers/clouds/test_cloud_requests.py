"""Our requests are the SDKs': address, headers, body, and a signature of the body that is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from ba_tui.core.provider import Provider
from tests.providers.clouds.conftest import ASKED, CLAUDE, MODELS
from tests.providers.conftest import until_error
from tests.providers.recorder import recording
from tests.providers.test_sdk_contract import LEFT_OUT, OTHER

SIGNED = {"authorization": "covers the headers that differ", "x-amz-date": "tells the time"}
"""Headers of a signature, which differ whenever another header does."""


async def theirs(kind: str, fields: Mapping[str, Any], url: str) -> None:
    """The same conversation, said to the SDK."""
    import anthropic
    from anthropic.lib.bedrock import AsyncAnthropicBedrock
    from anthropic.lib.vertex import AsyncAnthropicVertex

    clients: dict[str, Any] = {
        "bedrock": AsyncAnthropicBedrock,
        "vertex": AsyncAnthropicVertex,
        "foundry": anthropic.AsyncAnthropicFoundry,
    }
    async with clients[kind](base_url=url, max_retries=0) as client:
        fields = {name: value for name, value in fields.items() if name not in {"anthropic_version", "model", "stream"}}
        async for _ in await client.messages.create(**fields, model=MODELS[kind], stream=True):
            pass


@pytest.mark.parametrize("kind", CLAUDE)
async def test_our_requests_are_those_of_the_sdk(
    kind: str,
    set_up: Callable[[str, str], None],
    connect: Callable[[str, str], Provider],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # AWS signs ASCII only.
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Team: {'a' if kind == 'bedrock' else 'α'}")
    async with recording() as server:
        set_up(kind, server.url)
        # The answer is no frame of Bedrock, which is told; the request is what counts.
        await until_error(connect(kind, server.url).stream(ASKED))
        with suppress(Exception):
            await theirs(kind, server.requests[-1].json, server.url)
        our, their = server.requests
    assert (our.method, our.path) == (their.method, their.path)
    assert our.json == their.json
    assert their.headers.keys() - our.headers.keys() - LEFT_OUT.keys() == set()
    assert our.headers.keys() <= their.headers.keys()
    compared = our.headers.keys() - OTHER.keys() - (SIGNED.keys() if kind == "bedrock" else set())
    assert {name: our.headers[name] for name in compared} == {name: their.headers[name] for name in compared}


async def test_bedrock_signs_the_body_that_is_sent(
    set_up: Callable[[str, str], None], connect: Callable[[str, str], Provider]
) -> None:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    async with recording() as server:
        set_up("bedrock", server.url)
        await until_error(connect("bedrock", server.url).stream(ASKED))
        seen = server.requests[0]
    signed = seen.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest(
        seen.method, server.url + seen.path, {name: seen.headers[name] for name in signed}, data=seen.body
    )
    request.context["timestamp"] = seen.headers["x-amz-date"]
    signer: Any = SigV4Auth(Credentials("AKIA1", "secret"), "bedrock", "eu-west-1")
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    assert seen.headers["authorization"].endswith(f"Signature={signature}")


async def test_azure_has_the_address_of_openai_and_the_header_of_azure(
    set_up: Callable[[str, str], None], connect: Callable[[str, str], Provider]
) -> None:
    import openai

    async with recording() as server:
        set_up("azure", server.url)
        await until_error(connect("azure", server.url).stream(ASKED))
        fields = server.requests[0].json
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.url}/openai/v1", max_retries=0) as client:
            async for _ in await client.chat.completions.create(**fields):
                pass
        async with openai.AsyncAzureOpenAI(azure_endpoint=server.url, api_version="v", max_retries=0) as client:
            async for _ in await client.chat.completions.create(**fields):
                pass
    our, their, azure = server.requests
    assert (our.path, our.json) == (their.path, their.json)
    assert our.headers["api-key"] == azure.headers["api-key"] == "key-of-azure"
    credentials = {"authorization", "api-key"}
    assert our.headers.keys() - credentials == their.headers.keys() - credentials - LEFT_OUT.keys()
    assert "authorization" not in our.headers


async def test_the_token_of_azure_stays_with_its_resource(
    connect: Callable[[str, str], Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording() as server, recording() as other:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key-of-azure")
        monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "token-of-azure")
        await until_error(connect("azure", "").stream(ASKED))
        await until_error(connect("azure", other.url).stream(ASKED))
    assert server.requests[0].headers["authorization"] == "Bearer token-of-azure"
    assert other.requests[0].headers["api-key"] == "key-of-azure"
    assert "authorization" not in other.requests[0].headers


async def test_a_bearer_token_of_bedrock_needs_no_credentials(
    connect: Callable[[str, str], Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token-of-bedrock")
    async with recording() as server:
        await until_error(connect("bedrock", server.url).stream(ASKED))
    assert server.requests[0].headers["authorization"] == "Bearer token-of-bedrock"
