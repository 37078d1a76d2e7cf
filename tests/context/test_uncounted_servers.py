"""Servers that report no token usage: limits count estimates, and faces show them as such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.agent import BudgetLimit
from ba_tui.core.events import MessageDone, Notice, TurnEnded
from ba_tui.core.ledger import Ledger
from ba_tui.core.messages import Message, Usage, user
from ba_tui.core.provider import ModelRequest, Prices, charged
from ba_tui.core.teamwork import Budget
from ba_tui.faces.tui.screens.context import cost_lead
from ba_tui.faces.tui.widgets.notices import tokens
from ba_tui.providers.pipeline import UsageEstimator
from ba_tui.providers.scripted import Step
from ba_tui.resources import places
from tests.loopback import ModelServer, Raw
from tests.loopback.formats import stream
from tests.script import Script, collect, conversation, says

START = Callable[..., ModelServer]
PROMPT = "Please look at the rows of the ledger. " * 100
PRICES = "prices: {input: 1000, output: 1000, cache_read: 1000, cache_write: 1000}"


def uncounted(say: str) -> Raw:
    """An answer of a server that does not count."""
    events = stream("openai", Step(say=say), "1")
    return Raw(b"".join(event for event in events if b'"prompt_tokens"' not in event))


def zeros(say: str) -> Raw:
    """An answer of a server that reports zeros."""
    return Raw(b"".join(stream("openai", Step(say=say, usage=Usage()), "1")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    places().config.mkdir(parents=True, exist_ok=True)
    return tmp_path / "work"


def priced(extra: str) -> None:
    (places().config / "models.yaml").write_text(f"models: [{{match: [some-model], window: 200000{extra}}}]")


@pytest.mark.parametrize(
    ("answer", "limits", "prices", "words"),
    [
        (uncounted, {"max_tokens": 500}, "", "Stopped at the limit of 500 tokens: this session has used about "),
        (zeros, {"max_cost": 0.5}, f", {PRICES}", "Stopped at the limit of $0.5: this session has cost about $"),
        (uncounted, {"max_cost": 0.005}, "", "Stopped at the limit of $0.005: this session has cost about $"),
    ],
)
async def test_limits_hold_by_estimates(
    folder: Path, model_server: START, answer: Callable[[str], Raw], limits: dict[str, Any], prices: str, words: str
) -> None:
    priced(prices)
    server = model_server([answer("One."), answer("Two.")])
    flags = {"model": "loop/some-model", "providers.loop.kind": "openai", "providers.loop.base_url": f"{server.url}/v1"}
    library = connect({**flags, **limits}, folder).library
    talk = library.create()
    first, second = await collect(talk.say(PROMPT)), await collect(talk.say("Again."))
    await talk.close()
    end = second[-1]
    assert isinstance(end, TurnEnded)
    assert (end.reason, len(server.requests)) == ("limit", 1)
    assert end.error is not None
    assert end.error.message.startswith(words)
    assert end.error.message.endswith(", as ba estimates.")
    told = [event.text for event in (*first, *second) if isinstance(event, Notice)]
    assert "The server of loop/some-model reports no token usage, so your limits count ba's estimates." in told
    unpriced = any("prices of loop/some-model are unknown" in text for text in told)
    assert unpriced == (not prices and "max_cost" in limits)
    # A session that is opened again still shows estimates, and no cost.
    again, ledger = connect(flags, folder).library, Ledger()
    opened = again.open(again.sessions()[0].id)
    for event in await opened.history():
        ledger.apply(event)
    await opened.close()
    used = ledger.session.usage
    assert 800 < used.estimated == used.prompt + used.output < 30_000
    assert (ledger.session.cost, again.sessions()[0].cost) == (None, None)
    assert tokens(used).startswith("↑~")
    assert "not known: the server of a model reports no usage" in cost_lead(ledger)


async def test_what_a_server_counted_stays_as_it_is() -> None:
    half = replace(says("Three words here."), usage=Usage(70, 0))
    provider = UsageEstimator(Script(says("One."), half, replace(says("Two."), usage=None)))
    request = ModelRequest("Be short.", [user("Hello there.")], ())
    found = [chunk for _ in range(3) async for chunk in provider.stream(request) if isinstance(chunk, Message)]
    counted, partly, none = (message.usage for message in found)
    assert counted == Usage(100, 10)
    assert partly is not None
    assert (partly.prompt, partly.output) == (70, partly.estimated)
    assert none is not None
    assert none.estimated == none.prompt + none.output > 10
    assert "estimated" not in Usage(1, 2).record
    assert (none.counted, Usage(1, 2).counted) == (0, 3)


@pytest.mark.parametrize(
    ("prices", "budget", "ends"),
    [
        (Prices(1000, 1000, 1000, 1000), Budget(cost=0.05), "Stopped at the budget of $0.05"),
        (Prices(1000, 1000, 1000, 1000), Budget(cost=5.0), ""),
        (None, Budget(cost=5.0), "Stopped: what the model costs is not known"),
        (None, Budget(tokens=100), "Stopped at the budget of 100 tokens"),
    ],
)
async def test_budgets_of_agents_count_estimates(prices: Prices | None, budget: Budget, ends: str) -> None:
    usage = Usage(100, 10, estimated=110)
    calls = replace(says("One.", ("none", {})), usage=usage)
    script = Script(calls, replace(says("Two."), usage=usage))
    script.model = replace(script.model, prices=prices)
    events = await collect(conversation(script, interceptors=(BudgetLimit(budget),)).say("Go."))
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert (end.error.message if end.error else "").startswith(ends or "")
    assert (end.reason == "done") == (not ends)
    done = [event for event in events if isinstance(event, MessageDone)]
    assert (done[0].cost, done[0].estimate) == (None, charged(prices, usage)[1])
