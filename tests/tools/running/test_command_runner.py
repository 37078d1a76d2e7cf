"""Commands in their profiles: what they can reach, what the model reads, who is asked, and how they end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.effects import OUTSIDE, READING, WORKING, Profile, ProfileStep
from ba_tui.core.events import Judged
from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.permissions.sandbox.confinement import FoundSandbox, Sandbox, find
from ba_tui.permissions.sandbox.layout import Bubblewrap, bubblewraps
from ba_tui.permissions.sandbox.protected_watch import PendingChanges, ProtectedWatch
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall
from ba_tui.processes.kernel_limits import KEYRINGS, SOCKET
from ba_tui.processes.values import ProcessLimits, WorkerSettings
from ba_tui.tools.builtin.shell import Python, python_tool, shell_tool
from ba_tui.tools.command_runner import UNWATCHED, CommandRunner, ProtectedReview
from ba_tui.tools.shells import Shell
from ba_tui.tools.workers import Code, WorkerPool
from tests.tools.conftest import Harness
from tests.tools.running.processes import Floor, all_gone, floor, printed, tagged, until_printed, within_guards

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")


class Yard:
    """A floor whose commands run confined. ``verdict`` is what the rules say of running outside."""

    def __init__(
        self,
        floor: Floor,
        sandbox: Sandbox,
        limits: ProcessLimits = ProcessLimits(),  # noqa: B008 - a value
        watched: ProtectedReview = UNWATCHED,
    ) -> None:
        self.floor = floor
        self.harness = floor.harness
        self.verdict: Allow | Deny | Ask = Ask("", None, ("runs a command",))
        self.profile = WORKING
        self.steps: tuple[ProfileStep, ...] = ()
        self.judged: list[str] = []
        self.tried: list[str] = []
        runner = CommandRunner(sandbox, widen=self.judge, review=watched)
        shell = Shell(self.harness.bash, {**self.harness.environment, "BA_TAG": floor.tag}, limits=limits)
        definitions, workspace = self.harness.definitions, self.harness.workspace
        tools = (
            shell_tool(definitions["shell"], workspace, shell, floor.shells, runner),
            python_tool(definitions["python"], workspace, shell, Python(None, limits, runner), floor.shells),
        )
        self.harness.tools = {**self.harness.tools, **{tool.name: within_guards(self.allowed(tool)) for tool in tools}}

    def allowed(self, tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            return await tool.run(args, replace(call, profile=self.profile, steps=self.steps))

        return replace(tool, run=run)

    def judge(self, request: JudgedCall) -> Allow | Deny | Ask:
        self.judged.append(str(request.args.get("command", request.args.get("code"))))
        self.tried.append(request.tried)
        return self.verdict

    @property
    def audit(self) -> list[Judged]:
        return [event for event in self.harness.events if isinstance(event, Judged)]

    def answers(self, reply: Reply) -> list[Question]:
        asked: list[Question] = []

        def answer(question: Question) -> Reply:
            asked.append(question)
            return reply

        self.harness.answer = answer
        return asked


def sandbox_at(harness: Harness) -> Sandbox:
    found = find(bubblewraps())
    if found.mechanism is None:
        pytest.skip("; ".join(found.troubles))
    return Sandbox(FileReach((harness.root,)), look=lambda: found)


@pytest.fixture
def yard(floor: Floor) -> Iterator[Yard]:
    sandbox = sandbox_at(floor.harness)
    yield Yard(floor, sandbox)
    sandbox.close()


async def test_what_the_workspace_suffices_for_just_runs(yard: Yard) -> None:
    result = await yard.harness.run("shell", command="mkdir -p sub && cd sub && echo fine > a && cat a")
    assert result.text == "fine\n[the folder is now sub]"
    assert (yard.harness.root / "sub" / "a").exists()
    assert (await yard.harness.run("python", code="open('b', 'w').write('x')")).text == "1"
    assert yard.judged == []


async def test_nothing_leaves_the_sandbox_whatever_the_output_says(yard: Yard) -> None:
    yard.verdict = Allow("shell(sh:*)")
    told = [("Could not resolve host: example.org", "the network is off"), ("Read-only file system", "read-only there")]
    for words, why in told:
        command = f"test -w /etc && touch out; touch in; echo '{words}'; exit 6"
        result = await yard.harness.run("shell", command=command)
        assert why in result.text
        assert "call it with outside: true" in result.text
        assert not (yard.harness.root / "out").exists()
    assert (yard.harness.root / "in").exists()
    code = "open('in2', 'w'); import sys; print('EAI_AGAIN'); sys.exit(open('/etc/ba-test', 'w'))"
    assert "outside: true" in (await yard.harness.run("python", code=code)).text
    assert yard.judged == []
    assert not Path("/etc/ba-test").exists()


async def test_what_was_allowed_outside_runs_there(yard: Yard) -> None:
    yard.profile = OUTSIDE
    result = await yard.harness.run("shell", command="echo $PPID; cat /proc/1/comm")
    assert "supervisor" not in result.text
    assert result.text.split()[1] != "bwrap"


async def test_a_reader_that_writes_is_offered_the_workspace_once(yard: Yard) -> None:
    asked = yard.answers(Reply("once"))
    yard.profile = READING
    result = await yard.harness.run("shell", command="echo x > made && cat made")
    assert result.text == "x\n[this is its second run, with write access: as a reader it tried to write made]"
    (question,) = asked
    assert (question.text, question.rule) == ("Run it again with write access to the workspace?", None)
    assert "tried to write made." in question.reason
    assert (yard.tried, "[again, with write access" in printed(yard.harness)) == (["made"], True)
    assert [(judged.verdict, judged.by, judged.profile) for judged in yard.audit] == [("allow", "person", "working")]


async def test_a_no_leaves_the_reader_and_the_words(yard: Yard) -> None:
    yard.answers(Reply("deny", "use another file"))
    yard.profile = READING
    result = await yard.harness.run("shell", command="echo x > made")
    assert "Read-only file system" in result.text
    assert "letting it write made was not allowed and said: use another file" in result.text
    assert not (yard.harness.root / "made").exists()


@pytest.mark.parametrize(
    ("verdict", "ran"),
    [(Allow("shell(echo:*)"), True), (Allow(), True), (Deny("Plan mode: nothing is changed."), False)],
)
async def test_rules_and_modes_decide_about_a_reader_that_writes(yard: Yard, verdict: Allow | Deny, ran: bool) -> None:
    yard.profile, yard.verdict = READING, verdict
    result = await yard.harness.run("shell", command="echo x > made")
    assert (yard.harness.root / "made").exists() == ran
    assert ("Plan mode" in result.text) != ran


async def test_a_reader_reaches_nothing_but_a_folder_of_its_own(yard: Yard) -> None:
    yard.profile = READING
    yard.harness.write(".env", "TOKEN=hunter2\nOTHER=hunter2hunter2\n")
    code = "print(open('.e' + 'nv').read())"
    script = (
        f'echo kept > /tmp/a; cat .env; {sys.executable} -c "{code}"; touch new 2>/dev/null || echo no;'
        "chmod 777 .env 2>/dev/null || echo no; ls -A; true"
    )
    result = await yard.harness.run("shell", command=script)
    assert result.text.count("TOKEN=xxxxxxx\nOTHER=masked-by-baxx\n") == 2
    *_, one, other, listed, note = result.text.splitlines()
    assert ([one, other, listed], "commands.read" in note) == (["no", "no", ".env"], True)
    assert (await yard.harness.run("shell", command="cat /tmp/a")).text == "kept"
    assert yard.judged == []


@pytest.mark.skipif(os.uname().machine not in KEYRINGS, reason="these system calls have other numbers here")
async def test_keyrings_and_hypervisors_are_out_of_reach(yard: Yard) -> None:
    add, request, keyctl = KEYRINGS[os.uname().machine]
    code = (
        "import ctypes, errno; libc = ctypes.CDLL(None, use_errno=True); "
        f"calls = (({add}, b'user', b'ba-test', b'x', 1, -3), ({request}, b'user', b'x', 0, 0), ({keyctl}, 0, -3, 1)"
        f", ({SOCKET[os.uname().machine]}, 40, 1, 0)); "
        "print([libc.syscall(*call) < 0 and errno.errorcode[ctypes.get_errno()] for call in calls])"
    )
    result = await yard.harness.run("shell", command=f'{sys.executable} -c "{code}"')
    assert result.text == "['ENOSYS', 'ENOSYS', 'ENOSYS', 'EAFNOSUPPORT']"


async def test_a_reader_reaches_no_socket_even_where_commands_have_the_network(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(floor.harness.root)
    sandbox_at(floor.harness)
    sandbox = Sandbox(FileReach((floor.harness.root,), network=True), look=lambda: find(bubblewraps()))
    yard = Yard(floor, sandbox)
    code = "import socket; socket.socket(socket.AF_UNIX).connect('s')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        for profile, reached in ((READING, False), (WORKING, True)):
            yard.profile = profile
            result = await yard.harness.run("shell", command=f'{sys.executable} -c "{code}" && echo reached')
            assert ("reached" in result.text.splitlines()) == reached
    sandbox.close()


async def test_a_reader_that_misses_something_is_told_why_and_what_to_do(yard: Yard) -> None:
    yard.profile = READING
    yard.harness.write(".env", "TOKEN=hunter2")
    told = {
        "echo 'To get started with GitHub CLI, please run:  gh auth login'; exit 4": "your logins",
        "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.'; exit 1": "local services",
        "echo 'npm error code EAI_AGAIN'; exit 1": "the network is off",
    }
    for command, why in told.items():
        text = (await yard.harness.run("shell", command=command)).text
        assert why in text
        assert "call it with outside: true" in text
    assert (await yard.harness.run("shell", command="echo $npm_config_fetch_retries$PIP_RETRIES")).text == "00"
    failed = await yard.harness.run("shell", command="echo 'parse error in line 1 of ./.env'; exit 1")
    assert "ba hides .env from it; commands.read" in failed.text


async def test_secrets_are_hidden_from_what_was_allowed_too(yard: Yard) -> None:
    yard.harness.write(".env", "TOKEN=hunter2")
    (yard.harness.root / "twin").hardlink_to(yard.harness.root / ".env")
    (yard.harness.root / "link").symlink_to(".env")
    code = "print(open('.e'+'nv').read(), open('twin').read(), open('link').read())"
    assert "hunter2" not in (await yard.harness.run("python", code=code)).text
    denied = await yard.harness.run(
        "shell", command="echo x > .env; mv .env b; rm -f .env; ln .env c; cp .env d; cat d"
    )
    assert "hunter2" not in denied.text
    assert (yard.harness.root / ".env").read_text() == "TOKEN=hunter2"
    assert not (yard.harness.root / "c").exists()


async def test_git_sees_the_secrets_that_it_was_shown(yard: Yard) -> None:
    secret = yard.harness.write(".env", "TOKEN=hunter2")
    yard.profile = Profile("working", git=True, unhidden=(secret,))
    assert (await yard.harness.run("shell", command="cat .env; rm .env")).text == "TOKEN=hunter2"
    assert not secret.exists()


async def test_a_secret_that_git_takes_for_changed_is_told(yard: Yard) -> None:
    yard.harness.write(".env", "TOKEN=hunter2")
    yard.profile = OUTSIDE
    await yard.harness.run("shell", command="git init -q && git add -f .env")
    yard.profile = READING
    shown = (await yard.harness.run("shell", command="git status --short")).text
    assert shown == "AM .env\n[git sees substitutes for .env, which ba hides: the files may be unchanged]"


async def test_plain_readers_run_where_there_are_too_many_secrets_to_hide(yard: Yard) -> None:
    for number in range(201):
        yard.harness.write(f"{number}/.env", "TOKEN=hunter2")
    yard.profile = READING
    refused = await yard.harness.run("shell", command="cat 1/*")
    assert (refused.is_error, "201 files with secrets" in refused.text) == (True, True)
    yard.profile = Profile("reading", plain=True)
    yard.answers(Reply("deny"))
    assert (await yard.harness.run("shell", command="echo fine; touch new")).text.startswith("fine\n")
    assert not (yard.harness.root / "new").exists()


@pytest.mark.parametrize(("choice", "ran"), [("Keep them", True), ("deny", False)])
async def test_no_step_runs_before_the_person_has_decided_about_the_last(
    floor: Floor, tmp_path: Path, choice: str, ran: bool
) -> None:
    sandbox = sandbox_at(floor.harness)
    watch = ProtectedWatch(sandbox.scan, PendingChanges(tmp_path / "aside"))
    yard = Yard(floor, sandbox, watched=ProtectedReview(watch))
    yard.answers(Reply("deny") if choice == "deny" else Reply("text", choice))
    yard.steps = tuple(ProfileStep(f"echo {each}", WORKING) for each in ("x > .mcp.json", "y > b", "z > c"))
    result = await yard.harness.run("shell", command="echo x > .mcp.json; echo y > b; echo z > c")
    assert ((yard.harness.root / "b").exists(), (yard.harness.root / "c").exists()) == (ran, ran)
    assert ("[not run because of that: echo y > b; echo z > c]" in result.text) != ran
    sandbox.close()


async def test_a_file_that_the_person_names_is_not_hidden(floor: Floor) -> None:
    harness = floor.harness
    secret = harness.write("sub/.env", "TOKEN=hunter2")
    found = find(bubblewraps())
    yard = Yard(floor, Sandbox(FileReach((harness.root,), readable=(secret,)), look=lambda: found))
    assert (await yard.harness.run("shell", command="cat sub/.env")).text == "TOKEN=hunter2"


async def test_limits_hold_inside(floor: Floor) -> None:
    sandbox = sandbox_at(floor.harness)
    yard = Yard(floor, sandbox, ProcessLimits(300_000_000, 1_000_000, 300))
    result = await yard.harness.run("shell", command="head -c 3000000 /dev/zero > big; stat -c %s big; ulimit -u")
    size, processes = result.text.partition("\n[")[0].split()[-2:]
    assert (int(size), int(processes) >= 300) == (1_000_000, True)
    assert "MemoryError" in (await yard.harness.run("python", code="x = b'x' * 1_000_000_000")).text
    sandbox.close()


async def test_without_a_sandbox_that_is_required_nothing_runs(floor: Floor) -> None:
    nothing = Sandbox(FileReach((floor.harness.root,)), "required", lambda: FoundSandbox(None, ("bwrap: not allowed",)))
    yard = Yard(floor, nothing)
    for name, args in (("shell", {"command": "touch ran"}), ("python", {"code": "open('ran', 'w')"})):
        result = await yard.harness.run(name, **args)
        assert result.is_error
        assert "bwrap: not allowed" in result.text
        assert "Install bubblewrap" in result.text
    assert not (floor.harness.root / "ran").exists()


async def test_a_sandbox_that_breaks_is_told(floor: Floor) -> None:
    broken = floor.harness.write("bwrap", "#!/bin/sh\necho 'bwrap: no room' >&2\nexit 1\n")
    broken.chmod(0o755)
    yard = Yard(floor, Sandbox(FileReach((floor.harness.root,)), look=lambda: FoundSandbox(Bubblewrap(str(broken)))))
    result = await yard.harness.run("shell", command="echo out; touch ran")
    assert "bwrap: no room" in result.text
    assert not (floor.harness.root / "ran").exists()


async def test_all_it_started_ends_with_it(yard: Yard) -> None:
    harness = yard.harness
    left = "setsid sleep 60 & (setsid sh -c 'sleep 60; sleep 60' &) ; echo kept"
    result = await harness.run("shell", command=left)
    assert "left in the background: ended" in result.text
    await all_gone(yard.floor.tag)
    timed = await harness.run("shell", command=f"{left}; sleep 60", timeout=3)
    assert timed.text.endswith("Output so far (partial):\nkept")
    await all_gone(yard.floor.tag)


async def test_an_end_of_the_supervisor_in_there_ends_the_rest(yard: Yard) -> None:
    result = await yard.harness.run("shell", command="setsid sleep 60 & echo before; kill -9 $PPID; sleep 60")
    assert result.is_error
    assert "before" in result.text
    await all_gone(yard.floor.tag)


async def test_cancelling_ends_it(yard: Yard) -> None:
    harness = yard.harness
    use = ToolUse("call", "shell", {"command": "echo ready; sleep 60"})
    running = asyncio.ensure_future(harness.tools["shell"].run(use.input, Call(use.id, harness.branch)))
    await until_printed(harness, "ready")
    assert tagged(yard.floor.tag)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await all_gone(yard.floor.tag)


async def test_background_shells_run_there_too(yard: Yard) -> None:
    result = await yard.harness.run("shell", command="echo x > /etc/ba-test; echo here > a", background=True)
    assert "in the sandbox" in result.text
    await yard.floor.ended(result.summary)
    assert (yard.harness.root / "a").exists()
    assert not Path("/etc/ba-test").exists()


OWN = """
from ba_tui import tool
import resource, subprocess
@tool(effect="read")
def own() -> str:
    "Try what can be written."
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    open("inside", "w").close()
    try:
        open("/etc/ba-test", "w").close()
    except OSError as error:
        return f"{error.strerror} {resource.getrlimit(resource.RLIMIT_FSIZE)[0]}"
    return "written"
"""


async def test_workers_of_a_project_are_confined(floor: Floor) -> None:
    harness = floor.harness
    file = harness.write("own.py", OWN)
    sandbox = sandbox_at(harness)
    environment = {**harness.environment, "BA_TAG": floor.tag}
    code = Code(str(file), digest=hashlib.sha256(file.read_bytes()).hexdigest())
    pool = WorkerPool(code, WorkerSettings(harness.root, environment, {"fsize": 1_000_000}, sandbox.confine))
    reply, _ = await pool.call("own", {}, print, keep=True)
    assert "Read-only file system 1000000" in str(reply)
    assert (harness.root / "inside").exists()
    assert tagged(floor.tag)
    pool.close()
    await all_gone(floor.tag)
    sandbox.close()
