"""The sandbox over real programs: what they can write, read and reach, and what happens where nothing confines."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.effects import READING, WORKING, Profile
from ba_tui.permissions.sandbox import confinement
from ba_tui.permissions.sandbox.confinement import FoundSandbox, NotConfined, Sandbox, candidates, find
from ba_tui.permissions.sandbox.layout import Bubblewrap, Inside, Mechanism, MountPart, bubblewraps, landlocks, layout
from ba_tui.permissions.sandbox.layout import profile as seatbelt_profile
from ba_tui.permissions.sandbox.workspace_scan import FileReach, WorkspaceScan

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="name spaces and Landlock are Linux's")
Run = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("home secret")
    (home / ".netrc").write_text("home secret")
    (home / ".cache" / "pip").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n")
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("")
    (root / ".git" / "refs" / "heads").mkdir(parents=True)
    for name in ("libs/a", "libs/a/modules/b"):
        (root / ".git" / "modules" / name / "hooks").mkdir(parents=True)
        (root / ".git" / "modules" / name / "config").write_text("")
    (root / ".ba").mkdir()
    (root / ".mcp.json").write_text("{}")
    (root / "away").symlink_to(tmp_path)
    return root


def working(ways: Iterator[Mechanism]) -> FoundSandbox:
    found = find(ways)
    if found.mechanism is None:
        pytest.skip("; ".join(found.troubles) or "nothing of the kind is here")
    return found


def within(sandbox: Sandbox, root: Path, profile: Profile = WORKING) -> Run:
    confinement = sandbox.confine(profile)
    assert confinement is not None

    def run(script: str) -> subprocess.CompletedProcess[str]:
        words = confinement.wrap(["/bin/sh", "-c", f"cd {root} && {script}"])
        env = {**os.environ, **confinement.environment}
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=30, check=False)

    return run


@pytest.fixture
def run(root: Path, home: Path) -> Iterator[Run]:
    sandbox = Sandbox(FileReach((root,), home=home), look=lambda: working(iter(bubblewraps())))
    yield within(sandbox, root)
    sandbox.close()


@linux_only
def test_only_the_workspace_can_be_written(run: Run, root: Path, tmp_path: Path) -> None:
    done = run("echo inside > a; echo x > ../b; echo x > away/c; echo x > ~/d; touch /etc/e; cat a")
    assert done.stdout == "inside\n"
    assert (root / "a").read_text() == "inside\n"
    # The folder above is a stand-in as the user's temporary files are: what is written there is gone.
    assert not any((tmp_path / name).exists() for name in ("b", "c", "home/d"))
    assert "/etc/e" in done.stderr


@linux_only
def test_what_runs_elsewhere_is_guarded_in_the_workspace(run: Run, root: Path) -> None:
    script = (
        "for each in $(find .git/modules -name config -o -name hooks); do echo x > $each || echo x > $each/x; done;"
        "echo x > .git/hooks/pre-commit; echo x > .git/config; echo x > .ba/tools.yaml; rm -rf .ba; echo x > .mcp.json;"
        "mv .git elsewhere; mv .mcp.json m; echo x > .git/index; echo x > .git/commondir; "
        "echo x > .git/refs/heads/evil; echo go on"
    )
    assert run(script).stdout == "go on\n"
    assert not (root / ".git" / "commondir").exists()
    assert not any(each.read_text() for each in (root / ".git" / "modules").rglob("*") if each.is_file())
    assert not any((root / ".git" / "hooks").iterdir())
    assert (root / ".git" / "config").read_text() == ""
    assert not (root / ".git" / "index").exists()
    assert not (root / ".git" / "refs" / "heads" / "evil").exists()
    assert list((root / ".ba").iterdir()) == []
    assert (root / ".mcp.json").read_text() == "{}"


@linux_only
def test_sockets_of_who_listens_outside_are_hidden(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind("s")
        outside.listen()
        for network in (False, True):
            sandbox = Sandbox(FileReach((root,), home=home, network=network), look=lambda: working(iter(bubblewraps())))
            code = "import socket; socket.socket(socket.AF_UNIX).connect('s'); print('reached')"
            done = within(sandbox, root)(f'{sys.executable} -c "{code}"')
            sandbox.close()
            assert ("reached" in done.stdout) == network, done.stderr
    assert (root / "s").is_socket()


@linux_only
def test_a_home_is_hidden_but_for_tools_and_caches(run: Run, home: Path) -> None:
    done = run(
        f"cd {home}; ls -A; cat .ssh/id_rsa .netrc .gitconfig; echo x > .gitconfig; echo y > .cache/pip/z;"
        "echo lost > notes || echo told; echo x > .cache/new && echo fine"
    )
    assert done.stdout.endswith("told\nfine\n")
    assert "home secret" not in done.stdout + done.stderr
    assert "Ada" in done.stdout
    assert ".ssh" not in done.stdout.split()
    assert "Ada" in (home / ".gitconfig").read_text()
    assert (home / ".cache" / "pip" / "z").read_text() == "y\n"


@linux_only
def test_secrets_are_hidden_where_the_home_is_the_workspace(home: Path, tmp_path: Path) -> None:
    own = home / ".config" / "ba"
    own.mkdir(parents=True)
    (own / "keys.yaml").write_text("own secret")
    reach = FileReach((home,), hidden=(own,), home=home)
    sandbox = Sandbox(reach, look=lambda: working(iter(bubblewraps())))
    done = within(sandbox, home)("cat .ssh/id_rsa .netrc .config/ba/keys.yaml; echo fine > notes; cat notes")
    sandbox.close()
    assert done.stdout == "fine\n"
    assert "secret" not in done.stderr


@linux_only
def test_folders_of_ba_within_the_workspace_can_be_neither_changed_nor_moved(root: Path, home: Path) -> None:
    own = root / ".local/state/ba"
    (own / "written").mkdir(parents=True)
    (own / "written/record.json").write_text("{}")
    sandbox = Sandbox(FileReach((root,), home=home, hidden=(own,)), look=lambda: working(iter(bubblewraps())))
    for profile in (WORKING, READING):
        script = (
            "mv .local x; mv .local/state x; rm -rf .local; mkdir -p .local/state/ba;"
            "echo x > .local/state/ba/trusted.yaml; "
            "echo x > .local/other; cat .local/state/ba/written/record.json"
        )
        assert within(sandbox, root, profile)(script).stdout == ""
        assert [path.name for path in own.rglob("*")] == ["written", "record.json"]
        assert not [*(root / "x").rglob("record.json")]
    assert (root / ".local/other").read_text() == "x\n", "all else there is the workspace's"
    sandbox.close()


@linux_only
def test_nothing_outside_can_be_reached_or_seen(run: Run, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        done = run(f'{sys.executable} -c "{code}"; ls /proc | grep -c "^[0-9]"; kill -0 {os.getpid()} || echo unknown')
    assert "ConnectionRefused" in done.stderr
    count, known = done.stdout.split()
    assert int(count) < 10
    assert known == "unknown"


@linux_only
def test_the_network_and_more_folders_can_be_granted(root: Path, home: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    reach = FileReach((root,), (more,), (home / ".ssh",), network=True, home=home)
    sandbox = Sandbox(reach, look=lambda: working(iter(bubblewraps())))
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        done = within(sandbox, root)(f'{sys.executable} -c "{code}" && echo reached; echo x > {more}/x; ls {home}/.ssh')
    sandbox.close()
    assert done.stdout.splitlines() == ["reached"]
    assert (more / "x").exists()


@linux_only
def test_landlock_confines_files_and_tcp(root: Path, home: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(FileReach((root,), home=home), look=lambda: working(iter(landlocks())))
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        script = f"echo x > a; echo x > ../b; cat {home}/.netrc; echo t > $TMPDIR/t; cat $TMPDIR/t"
        done = within(sandbox, root)(f'{script}; {sys.executable} -c "{code}"')
    sandbox.close()
    assert (root / "a").exists()
    assert not (tmp_path / "b").exists()
    assert done.stdout == "t\n"
    assert "secret" not in done.stderr
    assert "PermissionError" in done.stderr


def test_a_worktree_brings_its_repository_when_that_knows_it(tmp_path: Path) -> None:
    own = tmp_path / "main" / ".git" / "worktrees" / "one"
    (tmp_path / "main" / ".git" / "hooks").mkdir(parents=True)
    own.mkdir(parents=True)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").write_text(f"gitdir: {own}\n")
    git = tmp_path / "main" / ".git"

    def seen(profile: Profile = WORKING) -> dict[Path, str]:
        inside = Inside(profile, tmp_path / "t", WorkspaceScan([tmp_path / "one"]).look())
        return {part.path: part.access for part in layout(FileReach((tmp_path / "one",)), inside)}

    assert git not in seen()
    (own / "gitdir").write_text(f"{tmp_path}/one/.git\n")
    assert seen()[git] == seen(READING)[git] == "read"
    alone = seen(Profile("working", git=True))
    assert (alone[git], alone[git / "hooks"], alone[tmp_path / "one" / ".git"]) == ("write", "read", "read")


def test_what_does_not_work_is_passed_over_and_told(tmp_path: Path, root: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert candidates(str(tmp_path))[0] == Bubblewrap(str(broken))
    found = find([Bubblewrap(str(broken)), Bubblewrap(str(tmp_path / "none"))])
    assert found.mechanism is None
    assert "uid map: Permission denied" in found.troubles[0]
    assert "No such file" in found.troubles[1]

    assert Sandbox(FileReach((root,)), look=lambda: found).confine() is None
    needed = Sandbox(FileReach((root,)), "required", lambda: found)
    with pytest.raises(NotConfined, match="uid map") as refused:
        needed.confine()
    assert "bubblewrap" in refused.value.hint


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "exit code 3"),
        ("echo first >&2; printf 'l\\033ast\\n' >&2; exit 1", "last"),
        ("echo no mounts >&2; exec sleep 600", "no end within 0.3 s"),
        ("exit 0", ""),
    ],
)
def test_why_a_mechanism_does_not_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    monkeypatch.setattr(confinement, "PATIENCE", 0.3 if "sleep" in script else 20.0)
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = find([Bubblewrap(str(program))])
    assert found.troubles == ((f"bubblewrap: {'no mounts' if 'no mounts' in script else why}",) if why else ())
    assert (found.mechanism is None) == bool(why)


def idle(root: Path, **more: Any) -> Sandbox:
    """A sandbox that is never started."""
    return Sandbox(FileReach((root,)), look=lambda: FoundSandbox(Bubblewrap("/bin/true", **more)))


@pytest.mark.parametrize(("many", "why"), [(200, ""), (201, "201 files with secrets lie in the workspace")])
def test_a_reader_is_held_where_all_secrets_can_be_hidden(root: Path, many: int, why: str) -> None:
    for number in range(many):
        (root / f".env.{number}").write_text("secret")
    assert idle(root).unheld().partition(",")[0] == why


def test_why_nothing_holds_a_reader(root: Path) -> None:
    none = Sandbox(FileReach((root,)), look=lambda: FoundSandbox(None))
    said = [none.unheld(), Sandbox(FileReach((root,)), "off").unheld(), idle(root, hides=False).unheld()]
    assert said == ["there is no sandbox", "the sandbox is off", "bubblewrap can't hide files with secrets"]
    assert (none.holds(), none.walled(), idle(root, hides=False).holds()) == (False, False, False)
    assert (idle(root).walled(), idle(root, walled=False).walled()) == (True, False)
    network = Sandbox(FileReach((root,), network=True), look=lambda: FoundSandbox(Bubblewrap("/bin/true")))
    assert not network.walled()


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("touch: cannot touch 'a b': Read-only file system", "a b"),
        ("bash: line 1: out/x: Read-only file system", "out/x"),
        ("OSError: [Errno 30] EROFS", "a file"),
        ("touch: cannot touch 'ROOT/x': Read-only file system", "ROOT/x"),
        ("touch: cannot touch '/etc/x': Read-only file system", ""),
        ("first: Read-only file system\nsecond: Read-only file system\nand more", "second"),
        ("a\x1bb: Read-only file system", "ab"),
        ("touch: cannot touch 'x': No space left on device", ""),
    ],
)
def test_what_a_program_could_not_write_is_what_it_says(root: Path, line: str, path: str) -> None:
    assert idle(root).refused_write(line.replace("ROOT", str(root))) == path.replace("ROOT", str(root))


def test_a_file_with_another_name_outside_is_named_as_the_cause(root: Path) -> None:
    said = "sh: a.txt: Read-only file system"
    assert "a hard link" in idle(root).blame(said, 1, [root / "a.txt"])
    assert "a hard link" not in idle(root).blame(said, 1, [root / "b.txt"])


def test_the_state_is_told_without_a_look(root: Path) -> None:
    looked: list[bool] = []

    def look() -> FoundSandbox:
        looked.append(True)
        return FoundSandbox(Bubblewrap("/bin/true"))

    sandbox = Sandbox(FileReach((root,)), look=look)
    assert (sandbox.state, looked) == ("", [])
    assert sandbox.holds()
    assert sandbox.holds()
    assert (sandbox.state, looked) == ("sandboxed", [True])
    off = Sandbox(FileReach((root,)), "off", look)
    assert (off.state, off.holds(), off.confine()) == ("no sandbox", False, None)


@pytest.mark.parametrize(
    ("output", "code", "why"),
    [
        ("curl: (6) Could not resolve host: example.org", 6, "network"),
        ("fatal: unable to access: Failed to connect: Connection refused", 128, "network"),
        ("touch: cannot touch '/etc/x': Read-only file system", 1, "read-only there"),
        ("error: could not write config file .git/config: Device or resource busy", 4, "read-only there"),
        ("sudo: The \"no new privileges\" flag is set", 1, "rights"),
        ("cat: /home/ada/.npmrc: No such file or directory", 1, "home"),
        ("cat: missing.txt: No such file or directory", 1, ""),
        ("2 failed, 3 passed", 1, ""),
        ("Connection refused", 0, ""),
        ("bash: ./x.sh: Permission denied", 126, ""),
    ],
)  # fmt: skip
def test_what_looks_like_the_sandbox_is_blamed_on_it(output: str, code: int, why: str) -> None:
    sandbox = Sandbox(FileReach((), home=Path("/home/ada")), look=lambda: FoundSandbox(Bubblewrap("/bin/true")))
    blamed = sandbox.blame(output, code)
    assert (why in blamed) if why else not blamed
    assert not Sandbox(FileReach((), network=True)).blame("Could not resolve host", 6)


def test_a_profile_for_macos_lets_the_innermost_part_decide() -> None:
    parts = (
        MountPart(Path("/Users"), "hidden"),
        MountPart(Path('/Users/a/"x'), "write"),
        MountPart(Path('/Users/a/"x/.ba'), "read"),
    )
    lines = seatbelt_profile(parts, network=False).splitlines()
    assert lines[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    assert lines.index('(deny file-read-data file-write* (subpath "/Users"))') < lines.index(
        '(allow file-read* file-write* (subpath "/Users/a/\\"x"))'
    )
    assert lines.index('(deny file-write* (subpath "/Users/a/\\"x/.ba"))') > 5
    assert lines[-1] == "(deny network*)"
    assert "(deny network*)" not in seatbelt_profile(parts, network=True)


@linux_only
def test_the_private_temporary_folder_lasts_until_the_end(root: Path) -> None:
    sandbox = Sandbox(FileReach((root,)), look=lambda: working(iter(bubblewraps())))
    first = within(sandbox, root)("echo kept > /tmp/x; echo $TMPDIR")
    assert first.stdout == "/tmp\n"
    assert within(sandbox, root)("cat /tmp/x").stdout == "kept\n"
    assert sandbox._temporary
    shutil.rmtree(sandbox._temporary)
    assert within(sandbox, root)("cat /tmp/x; echo again > /tmp/y; cat /tmp/y").stdout == "again\n"
    before = set(Path(tempfile.gettempdir()).glob("ba-tmp-*"))
    sandbox.close()
    assert len(before - set(Path(tempfile.gettempdir()).glob("ba-tmp-*"))) == 1


@linux_only
def test_places_that_we_may_not_look_at_are_passed_over(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"/proc/1/root/bin:{tmp_path}/none:{os.environ['PATH']}")
    sandbox = Sandbox(FileReach((root,), home=Path("/proc/1/root/home")), look=lambda: working(iter(bubblewraps())))
    assert within(sandbox, root)("echo fine").stdout == "fine\n"
    sandbox.close()
