"""Trust in a folder: granted by a person, for exactly what it held then."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.permissions.trust.files import MOST_FILES, MOST_OF_FILE, PARTS
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import UserFolders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    tools = folder / ".ba" / "tools"
    tools.mkdir(parents=True)
    (tools / "a.py").write_text("A = 1\n")
    (folder / ".ba" / "workflows").mkdir()
    (folder / ".ba" / "workflows" / "flow.yaml").write_text("steps: []\n")
    return folder


@pytest.fixture
def where(tmp_path: Path) -> UserFolders:
    return UserFolders(tmp_path / "config", tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture
def trust(where: UserFolders) -> Trust:
    return Trust(where)


def grant(trust: Trust, root: Path) -> None:
    trust.grant(trust.look(root))


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_nothing_is_trusted_before_a_person_says_so(trust: Trust, where: UserFolders, root: Path):
    assert not trust.trusted(root)
    grant(trust, root)
    assert trust.trusted(root)
    assert Trust(where).trusted(root), "it is kept"
    assert not trust.trusted(root.parent)


def test_a_grant_can_be_taken_back(trust: Trust, root: Path):
    assert not trust.revoke(root)
    grant(trust, root)
    assert trust.revoke(root)
    assert not trust.trusted(root)


@pytest.mark.parametrize(
    "path",
    [
        *("tools/a.py", "tools/new.py", "tools/data.txt", "tools/sub/part.py", "workflows/flow.yaml", "tools.yaml"),
        "token_encoders.yaml",
    ],
)
def test_any_change_of_what_runs_takes_the_trust_away(trust: Trust, root: Path, path: str):
    grant(trust, root)
    assert trust.trusted(root)
    file = root / ".ba" / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("changed\n")
    assert not trust.trusted(root)
    grant(trust, root)
    assert trust.trusted(root)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("python scripts/check.py --fast", "scripts/check.py"),
        ('"$CLAUDE_PROJECT_DIR"/lint.sh', "lint.sh"),
        ("bash ${CLAUDE_PROJECT_DIR:-.}/lint.sh | tee x", "lint.sh"),
        ("cd scripts && ./run", "scripts/run"),
        ("python -m scripts.check", "scripts/check.py"),
        ("python -m scripts", "scripts/__main__.py"),
        ("for each in scripts/*.sh; do . $each; done", "scripts/b.sh"),
        ("node 'a folder/x.js'", "a folder/x.js"),
        ("make -s lint", "Makefile"),
        ("npm run lint", "package.json"),
    ],
)
def test_a_file_that_a_command_of_the_folder_names_counts_too(trust: Trust, root: Path, command: str, file: str):
    write(root, ".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}}))
    (root / file).parent.mkdir(exist_ok=True)
    grant(trust, root)
    write(root, file, "true\n")
    assert not trust.trusted(root), "it was not there before"
    grant(trust, root)
    assert trust.trusted(root)
    write(root, "README.md", "Run it.\n")
    assert trust.trusted(root)
    write(root, file, "rm -r .\n")
    seen = trust.look(root)
    assert [change.path for change in seen.files] == [file]
    assert any(file in held.names for held in seen.holds)


def test_a_file_that_hooks_or_settings_start_counts_too(trust: Trust, root: Path):
    stop = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "node ./server.js ../x"}]}]}}
    write(root, ".claude/settings.json", json.dumps(stop))
    write(root, ".ba/config.yaml", "hooks:\n  turn_end:\n  - command: sh ../project/own.sh\n")
    write(root, "server.js", "1\n")
    write(root, "own.sh", "true\n")
    (root.parent / "x").write_text("no file of the project")
    grant(trust, root)
    for name in ("server.js", "own.sh"):
        write(root, name, "2\n")
        assert not trust.trusted(root)
        grant(trust, root)
    (root.parent / "x").write_text("changed")
    assert trust.trusted(root)


def test_a_removed_or_renamed_file_is_a_change(trust: Trust, root: Path):
    grant(trust, root)
    file = root / ".ba" / "tools" / "a.py"
    renamed = file.rename(file.with_name("b.py"))
    assert not trust.trusted(root)
    renamed.rename(file)
    assert trust.trusted(root), "the same files as before"
    file.unlink()
    assert not trust.trusted(root)


def test_a_change_that_keeps_size_and_time_is_seen(trust: Trust, root: Path):
    file = root / ".ba" / "tools" / "a.py"
    status = file.stat()
    grant(trust, root)
    assert trust.trusted(root)
    file.write_text("A = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not trust.trusted(root)


def whole_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As file systems are that keep no parts of a second."""

    def coarse(status: os.stat_result) -> os.stat_result:
        second = int(status.st_ctime) * 10**9
        return os.stat_result(tuple(status), {"st_mtime_ns": second, "st_ctime_ns": second})

    stat, fstat = os.stat, os.fstat
    monkeypatch.setattr(os, "stat", lambda *path, **more: coarse(stat(*path, **more)))
    monkeypatch.setattr(os, "fstat", lambda handle: coarse(fstat(handle)))


def test_a_change_within_the_same_second_is_seen(trust: Trust, root: Path, monkeypatch: pytest.MonkeyPatch):
    whole_seconds(monkeypatch)
    grant(trust, root)
    assert trust.trusted(root)
    with (root / ".ba" / "tools" / "a.py").open("r+") as file:
        file.write("B")
    assert not trust.trusted(root)


def test_a_grant_that_goes_within_the_same_second_is_gone(trust: Trust, root: Path, monkeypatch: pytest.MonkeyPatch):
    whole_seconds(monkeypatch)
    grant(trust, root)
    assert trust.trusted(root)
    text = trust.path.read_text()
    with trust.path.open("r+") as file:
        file.write(text.replace("fingerprint: ", "fingerprint: f")[: len(text)])
    assert not trust.trusted(root)


def test_what_links_lead_to_counts(trust: Trust, root: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.py").write_text("FAR = 1\n")
    (root / ".ba" / "tools" / "linked").symlink_to(elsewhere)
    (root / ".ba" / "tools" / "round").symlink_to(root / ".ba" / "tools")
    grant(trust, root)
    assert trust.trusted(root)
    (elsewhere / "far.py").write_text("FAR = 2\n")
    assert not trust.trusted(root)


def test_what_does_not_run_does_not_count(trust: Trust, root: Path):
    grant(trust, root)
    (root / "README.md").write_text("changed\n")
    (root / ".ba" / "notes.md").write_text("changed\n")
    (root / ".ba" / "tools" / "__pycache__").mkdir()
    (root / ".ba" / "tools" / "__pycache__" / "a.pyc").write_text("x")
    assert trust.trusted(root)


def test_an_empty_folder_can_be_trusted_and_its_first_file_ends_that(trust: Trust, tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    grant(trust, empty)
    assert trust.trusted(empty)
    (empty / ".ba" / "tools").mkdir(parents=True)
    (empty / ".ba" / "tools" / "a.py").write_text("A = 1\n")
    assert not trust.trusted(empty)


def test_a_pipe_among_the_files_blocks_nothing(trust: Trust, root: Path):
    os.mkfifo(root / ".ba" / "tools" / "pipe.py")
    grant(trust, root)
    assert trust.trusted(root)


def test_more_than_a_person_can_look_at_is_not_trusted(trust: Trust, root: Path):
    grant(trust, root)
    for number in range(MOST_FILES):
        (root / ".ba" / "tools" / f"f{number}.py").touch()
    with pytest.raises(UsageError, match="holds more than"):
        grant(trust, root)
    assert not trust.trusted(root)


@pytest.mark.parametrize("text", ["", "[", "- a", "{{}}", "? x : y", "'{root}': yes", "'{root}': {{fingerprint: 3}}"])
def test_a_file_that_can_not_be_understood_trusts_nothing(trust: Trust, root: Path, text: str):
    trust.path.parent.mkdir()
    trust.path.write_text(text.format(root=root))
    assert not trust.trusted(root)


def test_the_file_is_the_persons_alone(trust: Trust, root: Path):
    grant(trust, root)
    assert trust.path.stat().st_mode & 0o777 == 0o600
    assert str(root) in trust.path.read_text()


def test_every_kind_of_what_runs_counts(trust: Trust, root: Path):
    grant(trust, root)
    texts = {".json": '{"hooks": {"Stop": []}}', ".yaml": "max_loops: 3\n"}
    for parts in PARTS.values():
        for part in parts:
            name = part if "." in Path(part).name[1:] else f"{part}/name/file.md"
            write(root, name, texts.get(Path(name).suffix, "new\n"))
            assert not trust.trusted(root), part
            assert name in [file.path for file in trust.look(root).files], part
            grant(trust, root)
            assert trust.trusted(root), part


@pytest.mark.parametrize(
    ("name", "before", "harmless", "harmful"),
    [
        (".ba/config.yaml", "theme: dark\n", "theme: light # nicer\n", "theme: dark\nhooks: {}\n"),
        (".ba/config.yaml", "permissions: {deny: [shell]}\n", "permissions: {deny: [shell]} #\n", "theme: dark\n"),
        (".claude/settings.json", '{"model": "a"}', '{"model": "b"}', '{"hooks": {"Stop": [1]}}'),
        (".ba/config.yaml", "max_loops: 3\n", "max_loops: 3\ntheme: light\n", "max_loops: 3\nmodel: x/y\n"),
    ],
)
def test_of_settings_only_counts_what_could_do_something(
    trust: Trust, root: Path, name: str, before: str, harmless: str, harmful: str
):
    write(root, name, before)
    grant(trust, root)
    write(root, name, harmless)
    assert trust.trusted(root)
    write(root, name, harmful)
    assert not trust.trusted(root)


def test_what_it_brings_is_told_by_kind_and_name(trust: Trust, root: Path):
    write(root, ".ba/skills/report/SKILL.md", "---\nname: report\n---\n")
    write(root, ".mcp.json", '{"mcpServers": {"files": {"command": "npx"}, "web": {"url": "http://x"}}}')
    write(root, ".claude/agents/reviewer.md", "Reviews.\n")
    write(root, ".ba/config.yaml", "theme: dark\npermissions: {allow: [shell(make), edit_file]}\n")
    seen = trust.look(root)
    assert {part.kind: part.names for part in seen.holds} == {
        "tools": ("a.py",),
        "MCP servers": ("files: npx", "web: http://x"),
        "workflows": ("flow.yaml",),
        "skills": ("report",),
        "agents": ("reviewer.md",),
        "settings": ("permissions.allow: shell(make), edit_file",),
    }


def test_a_change_is_shown_as_a_difference(trust: Trust, root: Path, where: UserFolders):
    write(root, ".ba/tools/b.py", "B = 1\n")
    seen = trust.look(root)
    assert seen.state == "unknown"
    assert {file.path: file.before for file in seen.files} == dict.fromkeys(
        [".ba/tools/a.py", ".ba/tools/b.py", ".ba/workflows/flow.yaml"]
    )
    trust.grant(seen)
    write(root, ".ba/tools/a.py", "A = 2\n")
    write(root, ".ba/commands/new.md", "New.\n")
    (root / ".ba" / "tools" / "b.py").unlink()
    seen = Trust(where).look(root)
    assert (seen.state, seen.gone) == ("changed", (".ba/tools/b.py",))
    assert [(file.path, file.before, file.after) for file in seen.files] == [
        (".ba/tools/a.py", "A = 1\n", "A = 2\n"),
        (".ba/commands/new.md", None, "New.\n"),
        (".ba/tools/b.py", "B = 1\n", ""),
    ]


def test_without_copies_all_is_shown_whole(trust: Trust, root: Path, where: UserFolders):
    grant(trust, root)
    for copy in where.vouched.iterdir():
        assert copy.stat().st_mode & 0o777 == 0o600
        copy.write_text("{")
    write(root, ".ba/tools/a.py", "A = 2\n")
    seen = trust.look(root)
    assert seen.state == "changed"
    assert {file.before for file in seen.files} == {None}
    assert len(seen.files) == 2


def test_what_is_no_text_or_too_long_is_named(trust: Trust, root: Path):
    (root / ".ba" / "tools" / "logo.png").write_bytes(b"\x89PNG\0\xff")
    write(root, ".ba/tools/long.txt", "x" * (MOST_OF_FILE + 1))
    texts = {file.path: file.after for file in trust.look(root).files}
    assert "no text: 6 bytes" in texts[".ba/tools/logo.png"]
    assert "200001 bytes: too large" in texts[".ba/tools/long.txt"]
    grant(trust, root)
    write(root, ".ba/tools/long.txt", "y" * (MOST_OF_FILE + 1))
    (changed,) = trust.look(root).files
    assert (changed.path, changed.before) == (".ba/tools/long.txt", "(no copy was kept)\n")


def test_what_changes_while_the_person_reads_is_not_trusted(trust: Trust, root: Path):
    seen = trust.look(root)
    write(root, ".ba/tools/a.py", "import os\n")
    trust.grant(seen)
    assert not trust.trusted(root)
    assert trust.look(root).state == "changed"


def test_home_and_root_are_warned_about(trust: Trust, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "home folder" in trust.look(tmp_path).warning
    assert "far more than one project" in trust.look(tmp_path.parent).warning
    assert trust.look(root).warning == ""


def test_the_persons_own_folder_is_no_project(tmp_path: Path):
    own = tmp_path / ".ba"
    write(own, "tools/mine.py", "M = 1\n")
    assert Trust(UserFolders(own, own, own / "cache", own)).look(tmp_path).holds == ()


def test_links_are_shown_with_their_targets(trust: Trust, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    key = tmp_path / "home" / ".ssh" / "id_rsa"
    key.parent.mkdir(parents=True)
    key.write_text("a key that nobody should keep a copy of")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "SKILL.md").write_text("far")
    (root / ".ba" / "skills").mkdir()
    (root / ".ba" / "skills" / "far").symlink_to(tmp_path / "far")
    (root / ".ba" / "tools" / "b.py").symlink_to("a.py")
    (root / ".ba" / "tools" / "c.py").symlink_to(key)
    seen = trust.look(root)
    assert seen.links == (
        ".ba/tools/b.py → .ba/tools/a.py",
        ".ba/tools/c.py → ~/.ssh/id_rsa, which holds secrets",
        f".ba/skills/far/SKILL.md → {tmp_path.resolve()}/far/SKILL.md, outside this project",
    )
    assert not any("a key that nobody" in file.after for file in seen.files)
    trust.grant(seen)
    assert not any("a key that nobody" in file.read_text() for file in tmp_path.rglob("*.json"))
    key.write_text("another key")
    assert not trust.trusted(root)
