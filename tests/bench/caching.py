"""How much of what a session sends can come from a vendor's prompt cache: 50 turns with tools, compared by the byte."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from ba_tui.assembly import connect
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.resources import places
from tests.bench.figures import Effort, Figure
from tests.loopback import ModelServer

TURNS = 50


def caching(effort: Effort) -> Iterator[Figure]:
    for kind, name in (("anthropic", "Messages"), ("openai", "Chat Completions")):
        bodies = asyncio.run(_session(kind))
        kept = sum(_same(earlier, later) for earlier, later in pairwise(bodies))
        earlier, later = sum(map(len, bodies[:-1])), sum(map(len, bodies[1:]))
        told = f"{TURNS} turns, {name}"
        yield Figure(f"input that the request before held, {told}", 100 * kept / later, "%", float("inf"))
        yield Figure(f"cacheable input that was changed, {told}", 100 * (1 - kept / earlier), "%", 0.1)


async def _session(kind: str) -> Sequence[bytes]:
    """The bodies of all requests of a session; each turn reads a file and answers."""
    with tempfile.TemporaryDirectory() as place, _home(Path(place) / "home"):
        folder = Path(place) / "work"
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Give amounts in euros.\n", "utf-8")
        trust_folder(folder)
        # Nothing else tells the window of a model that nobody knows, and in a small one the session is compressed.
        places().config.mkdir(parents=True, exist_ok=True)
        (places().config / "models.yaml").write_text(
            "models: [{match: [model], window: 200000, output: 8192}]", "utf-8"
        )
        steps: list[Step] = []
        for number in range(TURNS):
            rows = "".join(f"{row},{row * number % 97}.40\n" for row in range(60))
            (folder / f"part-{number}.csv").write_text(rows, "utf-8")
            steps.append(Step(calls=(ScriptedCall("read_file", {"path": f"part-{number}.csv"}),)))
            steps.append(Step(say=f"Part {number} adds up to {number * 1_203 / 7:.2f} euros. " * 4))
        with ModelServer(steps) as server:
            url = server.url if kind == "anthropic" else server.openai_url
            flags = {"model": "bench/model", "providers.bench.kind": kind, "providers.bench.base_url": url}
            conversation = connect(flags, folder).library.create()
            for number in range(TURNS):
                async for _ in conversation.say(f"What does part {number} add up to?"):
                    pass
            await conversation.close()
            assert len(server.requests) == 2 * TURNS, "every turn calls once and answers"
            return [_open_ended(request.body) for request in server.requests]


@contextmanager
def _home(folder: Path) -> Generator[None]:
    before = os.environ.get("BA_HOME")
    os.environ["BA_HOME"] = str(folder)
    try:
        yield
    finally:
        del os.environ["BA_HOME"]
        if before is not None:
            os.environ["BA_HOME"] = before


def _open_ended(body: bytes) -> bytes:
    """``body`` up to the end of its last message."""
    return body[: body.rindex(b"]")]


def _same(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
