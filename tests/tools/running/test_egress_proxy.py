"""What commands in the sandbox reach: hosts that a rule or the user allows, one question each, and nothing else."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ba_tui.core.events import Judged
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call
from ba_tui.permissions.sandbox.confinement import Sandbox, find
from ba_tui.permissions.sandbox.layout import bubblewraps
from ba_tui.permissions.sandbox.workspace_scan import FileReach as Sight
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.addresses import AddressReach, WebAddress
from ba_tui.tools.builtin.shell import Python, python_tool, shell_tool
from ba_tui.tools.command_runner import CommandRunner
from ba_tui.tools.egress_proxy import NetworkAccess
from ba_tui.tools.shells import Shell
from tests.tools.running.processes import Floor, floor, until_printed, within_guards

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")

GET = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=8).read().decode())"
TUNNEL = """
import http.client, sys
way = http.client.HTTPConnection("127.0.0.1", 3128, timeout=8)
way.set_tunnel("site.test", int(sys.argv[1]))
for _ in range(2):
    way.request("GET", "/in?a=1")
    print(way.getresponse().read().decode())
"""


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Sequence[str] = ()

    def do_GET(self) -> None:
        type(self).seen = (*self.seen, f"{self.path} {self.headers['Host']}")
        body = f"page {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


class Town:
    """A floor whose commands are confined, a site that runs next door, and what rules say of a host."""

    def __init__(self, floor: Floor, sandbox: Sandbox, port: int) -> None:
        self.floor, self.port = floor, port
        self.verdict: Allow | Deny | Ask = Ask("Why.", "shell_network(domain:site.test)", ("network",))
        self.judged: list[str] = []
        self.kept: list[tuple[str, str]] = []
        self.looked_up: list[str] = []
        harness = floor.harness
        runner = CommandRunner(sandbox, None, lambda: self.network)
        shell = Shell(harness.bash, {**harness.environment, "BA_TAG": floor.tag})
        self.network = NetworkAccess(
            self.judge, lambda rule, scope: self.kept.append((rule, scope)), REACH, self.resolve
        )
        tools = (
            shell_tool(harness.definitions["shell"], harness.workspace, shell, floor.shells, runner),
            python_tool(
                harness.definitions["python"], harness.workspace, shell, Python(None, runner=runner), floor.shells
            ),
        )
        harness.tools = {**harness.tools, **{tool.name: within_guards(tool) for tool in tools}}

    def judge(self, address: WebAddress, call: Call) -> Allow | Deny | Ask:
        self.judged.append(address.host)
        return self.verdict

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        return ["127.0.0.1"] if host.endswith(".test") else []

    def answers(self, reply: Reply) -> list[Question]:
        asked: list[Question] = []

        def answer(question: Question) -> Reply:
            asked.append(question)
            return reply

        self.floor.harness.answer = answer
        return asked

    async def get(self, *addresses: str) -> str:
        commands = (f"{sys.executable} -c '{GET}' {address} 2>&1 | tail -1 &" for address in addresses)
        return (await self.floor.harness.run("shell", command=f"{' '.join(commands)} wait")).text

    def notes(self) -> list[tuple[str, str]]:
        return [(event.verdict, event.by) for event in self.floor.harness.events if isinstance(event, Judged)]


REACH = AddressReach(("site.test",))


@pytest.fixture
def town(floor: Floor) -> Iterator[Town]:
    found = find(bubblewraps())
    if found.mechanism is None:
        pytest.skip("; ".join(found.troubles))
    sandbox = Sandbox(Sight((floor.harness.root,)), look=lambda: found)
    Site.seen = ()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    yield Town(floor, sandbox, server.server_port)
    server.shutdown()
    server.server_close()
    serving.join()
    sandbox.close()


async def test_one_question_for_all_that_a_command_asks_of_a_host(town: Town) -> None:
    asked = town.answers(Reply("session"))
    place = f"site.test:{town.port}"
    text = await town.get(f"http://{place}/a", f"http://{place}/b")
    assert sorted(text.split("\n")) == ["page /a", "page /b"]
    assert sorted(Site.seen) == [f"/a {place}", f"/b {place}"]
    (question,) = asked
    assert (question.kind, question.tool, question.risks) == ("permission", "shell_network", ("network",))
    assert question.text == f"Let this command reach {place}?"
    assert town.kept == [("shell_network(domain:site.test)", "session")]
    assert town.notes() == [("allow", "person")]


async def test_a_no_reaches_the_program_and_the_model(town: Town) -> None:
    town.answers(Reply("deny", "not that one"))
    text = await town.get(f"http://site.test:{town.port}/a")
    assert f"403: ba does not let this command reach site.test:{town.port}: the user said no: not that one" in text
    assert text.endswith(f"[site.test:{town.port} was not reached: the user said no: not that one]")
    assert (Site.seen, town.looked_up, town.notes()) == ((), [], [("deny", "person")])


async def test_a_rule_needs_no_question_and_tunnels_stay_open(town: Town) -> None:
    town.verdict = Allow("shell_network(domain:site.test)")
    asked = town.answers(Reply("deny"))
    code = f"import sys; sys.argv = ['', '{town.port}']\n{TUNNEL}"
    assert (await town.floor.harness.run("python", code=code)).text == "page /in?a=1\npage /in?a=1"
    assert (asked, town.notes()) == ([], [("allow", "rule")])


async def test_what_lies_inside_is_never_reached(town: Town) -> None:
    town.verdict = Allow("shell_network")
    # An address as such is refused before anybody is asked; a name when it turns out to lead there.
    text = await town.get(
        "http://169.254.169.254/latest", f"http://other.test:{town.port}/", "http://[::ffff:10.0.0.1]/"
    )
    assert text.count("HTTP Error 403") == 3
    assert f"other.test:{town.port}: it is not on the public internet" in text
    assert (Site.seen, town.judged) == ((), ["other.test"])


async def test_without_a_way_round(town: Town) -> None:
    town.verdict = Deny("Denied by the rule @network.", "@network")
    alone = (
        f"{sys.executable} -c 'import socket; socket.create_connection((\"127.0.0.1\", {town.port}))' 2>&1 | tail -1"
    )
    assert "refused" in (await town.floor.harness.run("shell", command=alone)).text
    assert "Denied by the rule @network" in await town.get(f"http://site.test:{town.port}/")
    odd = "import socket; s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); "
    result = await town.floor.harness.run("python", code=f"{odd}print(s.recv(999).decode().split('\\r\\n')[0])")
    assert result.text == "HTTP/1.1 400 ba does not pass this on: a proxy is given whole addresses"
    assert Site.seen == ()


async def test_in_the_background_nobody_is_asked(town: Town) -> None:
    asked = town.answers(Reply("once"))
    command = f"{sys.executable} -c '{GET}' http://site.test:{town.port}/ 2>&1 | tail -1"
    result = await town.floor.harness.run("shell", command=command, background=True)
    await town.floor.ended(result.summary)
    assert "a background command can't ask you" in town.floor.shells.output(result.summary)
    assert (asked, Site.seen) == ([], ())


class SlowPerson:
    """Answers a question when the test says so."""

    def __init__(self) -> None:
        self.asked, self.answered = asyncio.Event(), asyncio.Event()

    async def consult(self, question: Question) -> Reply:
        self.asked.set()
        await self.answered.wait()
        return Reply("always")


def started(town: Town, command: str, seconds: int) -> tuple[SlowPerson, asyncio.Task[ToolResult]]:
    person, shell = SlowPerson(), town.floor.harness.tools["shell"]
    call = Call("slow", town.floor.harness.branch, consults=(person.consult,))
    return person, asyncio.ensure_future(shell.run({"command": command, "timeout": seconds}, call))


async def test_a_person_may_take_longer_than_the_command_has(town: Town) -> None:
    command = f"(sleep 3.2; echo late) & {sys.executable} -c '{GET}' http://site.test:{town.port}/slow; wait"
    call, running = started(town, command, 3)
    await until_printed(town.floor.harness, "late")
    call.answered.set()
    assert (await running).text == "late\npage /slow"


async def test_an_answer_that_comes_after_the_command_counts_for_the_next(town: Town) -> None:
    quick = GET.replace("timeout=8", "timeout=0.2")
    call, running = started(town, f"{sys.executable} -c '{quick}' http://site.test:{town.port}/ 2>&1 | tail -1", 30)
    await until_printed(town.floor.harness, "timed out")
    call.answered.set()
    assert "timed out" in (await running).text
    assert (town.kept, Site.seen) == ([("shell_network(domain:site.test)", "always")], ())


async def test_cancelling_withdraws_the_question(town: Town) -> None:
    call, running = started(town, f"{sys.executable} -c '{GET}' http://site.test:{town.port}/", 30)
    await call.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (town.kept, Site.seen, town.notes()) == ([], (), [])
