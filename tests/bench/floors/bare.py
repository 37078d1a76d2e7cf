"""The floors for a turn: the SDK alone, without any of ours. ``steps`` sends what ba sent, ``stream`` only listens.

Run as a program of its own, so that its CPU seconds are its own: ``python -m tests.bench.floors.bare steps URL BODY
COUNT``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import anthropic


def client(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="bench", base_url=url, max_retries=0)


async def send(model: anthropic.AsyncAnthropic, body: bytes) -> anthropic.AsyncStream[Any]:
    return await model.post(
        "/v1/messages",
        cast_to=object,
        content=body,
        options={"headers": {"Content-Type": "application/json"}},
        stream=True,
        stream_cls=anthropic.AsyncStream[Any],
    )


async def steps(url: str, recorded: Path, count: int) -> None:
    """Replays a conversation: each request holds two messages more than the one before, encoded beforehand."""
    whole = json.loads(recorded.read_bytes())
    messages = [json.dumps(message, separators=(",", ":")).encode() for message in whole.pop("messages")]
    head = json.dumps(whole, separators=(",", ":")).encode()[:-1] + b',"messages":['
    model = client(url)
    first = len(messages) - 2 * count
    for end in range(first, len(messages) + 1, 2):
        response = (await send(model, head + b",".join(messages[:end]) + b"]}")).response
        async for _ in response.aiter_bytes():
            pass
        await response.aclose()


async def stream(url: str, order: str) -> None:
    """CPU seconds from the first to the last event of a long answer, read event by event."""
    body = {"model": "bench", "max_tokens": 1000, "stream": True, "messages": [{"role": "user", "content": order}]}
    events = await send(client(url), json.dumps(body).encode())
    begin, size = time.process_time(), 0
    async for event in events:
        delta = event.get("delta") if isinstance(event, dict) else getattr(event, "delta", None)
        size += len(str(delta))
    print(json.dumps({"cpu": time.process_time() - begin, "size": size}))


if __name__ == "__main__":
    kind, url, given, *rest = sys.argv[1:]
    asyncio.run(steps(url, Path(given), int(rest[0])) if kind == "steps" else stream(url, given))
