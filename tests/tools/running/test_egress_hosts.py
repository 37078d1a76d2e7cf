"""What is decided about a host that a command wants to reach: by whom, once, and for how long it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ba_tui.core.events import Event, Judged
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.addresses import AddressReach, WebAddress
from ba_tui.tools.egress_proxy import HostDecisions, HostVerdict, NetworkAccess

ASK = Ask("Why.", "shell_network(domain:site.test)", ("network",))


def address(host: str = "site.test", port: int = 443) -> WebAddress:
    return WebAddress("https", host, port, "/")


class Gatehouse:
    """The decisions of one command. The user gives ``reply`` once ``answered`` is set."""

    def __init__(self, verdict: HostVerdict = ASK, reply: Reply | None = None, *, attended: bool = True) -> None:
        self.asked: list[str] = []
        self.events: list[Event] = []
        self.kept: list[tuple[str, str]] = []
        self.begun, self.answered = asyncio.Event(), asyncio.Event()
        self._reply = reply
        if reply:
            self.answered.set()
        call = Call("c", Branch(Turn(self.events.append), Transcript()), consults=(self._consult,))
        network = NetworkAccess(
            lambda address, call: verdict, lambda rule, scope: self.kept.append((rule, scope)), AddressReach(), _resolve
        )
        self.decisions = HostDecisions(network, call, CommandText("curl x", "."), attended=attended)

    async def _consult(self, question: Question) -> Reply:
        self.asked.append(question.text)
        self.begun.set()
        await self.answered.wait()
        return self._reply or Reply("once")

    @property
    def judged(self) -> list[tuple[str, str, str]]:
        return [(event.verdict, event.by, event.rule) for event in self.events if isinstance(event, Judged)]


async def _resolve(host: str, port: int) -> Sequence[str]:
    return ["93.184.216.34"] * 9 if host == "site.test" else ["10.0.0.1"]


@pytest.mark.parametrize(
    ("verdict", "reply", "why", "judged"),
    [
        (Allow("rule"), None, "", ("allow", "rule", "rule")),
        (Allow(), None, "", ("allow", "mode", "")),
        (Deny("No  way.", "rule"), None, "No way", ("deny", "rule", "rule")),
        (Deny("Plan mode."), None, "Plan mode", ("deny", "mode", "")),
        (ASK, Reply("once"), "", ("allow", "person", "")),
        (ASK, Reply("deny"), "the user said no", ("deny", "person", "")),
        (ASK, Reply("text", " later. "), "the user said no: later", ("deny", "person", "")),
        (ASK, Reply("deny", "Nobody answered.", by="nobody"), "Nobody answered", ("deny", "mode", "")),
        (ASK, Reply("deny", "A hook said no.", by="hook"), "A hook said no", ("deny", "hook", "")),
        (ASK, Reply("once", edited={"address": "https://site.test"}), "", ("allow", "person", "")),
        (
            ASK,
            Reply("once", edited={"address": "https://other.test"}),
            "the user wrote another address instead",
            ("deny", "person", ""),
        ),
    ],
)
async def test_who_decides_and_what_the_program_is_told(
    verdict: HostVerdict, reply: Reply | None, why: str, judged: tuple[str, str, str]
) -> None:
    gate = Gatehouse(verdict, reply)
    assert await gate.decisions.refusal(address()) == why
    assert await gate.decisions.refusal(address()) == why
    assert gate.judged == [judged]
    assert gate.decisions.refused == ({"site.test": why} if why else {})
    assert len(gate.asked) == (reply is not None)


async def test_the_usual_ports_are_one_question_and_each_other_is_one_more() -> None:
    gate = Gatehouse(reply=Reply("always"))
    for port in (80, 443, 8080, 443, 8080):
        assert await gate.decisions.refusal(address(port=port)) == ""
    assert gate.asked == [f"Let this command reach site.test{port}?" for port in (":80", ":8080")]
    assert gate.kept == [("shell_network(domain:site.test)", "always")] * 2


async def test_nobody_is_asked_about_what_no_answer_could_allow_or_where_nobody_waits() -> None:
    gate = Gatehouse()
    assert await gate.decisions.refusal(address("10.0.0.1")) == "it is not on the public internet"
    alone = Gatehouse(attended=False)
    assert "a background command can't ask you" in await alone.decisions.refusal(address())
    assert (gate.asked, alone.asked) == ([], [])


async def test_a_command_that_has_ended_waits_for_the_answer_and_asks_no_more() -> None:
    gate = Gatehouse()
    first = asyncio.create_task(gate.decisions.refusal(address()))
    await gate.begun.wait()
    settling = asyncio.create_task(gate.decisions.settle())
    await asyncio.sleep(0)
    assert "can't ask you" in await gate.decisions.refusal(address("other.test"))
    assert not settling.done()
    gate.answered.set()
    await settling
    assert first.done() or await first == ""
    await gate.decisions.settle()


async def test_who_gives_up_waiting_leaves_the_question_and_the_end_withdraws_it() -> None:
    gate = Gatehouse()
    waiting = [asyncio.create_task(gate.decisions.refusal(address())) for _ in range(2)]
    await gate.begun.wait()
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    assert not waiting[1].done()
    gate.decisions.end()
    await asyncio.wait(waiting)
    assert waiting[1].cancelled()
    assert (gate.judged, gate.kept) == ([], [])


async def test_the_time_of_a_question_counts_once_and_ends_with_it() -> None:
    gate = Gatehouse()
    assert gate.decisions.waited == 0
    asking = [asyncio.create_task(gate.decisions.refusal(address(port=port))) for port in (443, 8080)]
    while len(gate.asked) < 2:  # noqa: ASYNC110 - what it waits for has no event
        await asyncio.sleep(0)
    before = gate.decisions.waited
    while gate.decisions.waited == before:  # noqa: ASYNC110 - the clock has no event
        await asyncio.sleep(0)
    gate.answered.set()
    await asyncio.wait(asking)
    waited = gate.decisions.waited
    assert waited > before
    await asyncio.sleep(0.001)
    assert gate.decisions.waited == waited


async def test_so_many_machines_are_tried_and_none_that_lies_inside() -> None:
    network = Gatehouse().decisions.network
    assert list(await network.machines(address())) == ["93.184.216.34"] * 4
    assert list(await network.machines(address("inside.test"))) == []
    assert list(await network.machines(address("93.184.216.34"))) == ["93.184.216.34"]
