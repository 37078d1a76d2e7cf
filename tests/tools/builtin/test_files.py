"""Reading, writing and editing real files: nothing in them changes but what was asked for."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.results import Diff, Source
from ba_tui.core.tool import Call
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.editing import disk
from ba_tui.tools.editing.documents import Positions, detect, plain_lines
from ba_tui.tools.editing.edits import planned_edit
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure
from tests.tools.conftest import Harness


async def test_lines_are_numbered_and_ranges_say_how_to_go_on(harness: Harness) -> None:
    harness.write("a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
    result = await harness.run("read_file", path="a.txt", offset=3, limit=2)
    assert result.text == "3\tline 3\n4\tline 4\n[lines 3-4, of 10; go on with offset=5]"
    assert result.display == Source("a.txt", "line 3\nline 4", 3)
    assert (await harness.run("read_file", path="a.txt", offset=9)).text == "9\tline 9\n10\tline 10"


async def test_beyond_the_end_and_empty(harness: Harness) -> None:
    harness.write("a.txt", "one\n")
    harness.write("empty.txt", "")
    assert "has 1 lines" in (await harness.run("read_file", path="a.txt", offset=5)).text
    assert (await harness.run("read_file", path="empty.txt")).text == "empty.txt is empty."


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("naïve café\n".encode(), "naïve café", ""),
        (b"\xef\xbb\xbfwith mark\n", "with mark", "UTF-8 with byte order mark"),
        ("wide élan\n".encode("utf-16"), "wide élan", "utf-16-le"),
        (b"\xfe\xff" + "wide\n".encode("utf-16-be"), "wide", "utf-16-be"),
        ("plain letters in pairs\n".encode("utf-16-le"), "plain letters in pairs", "utf-16-le (guessed)"),
        ("un été à la plage\n".encode("cp1252"), "un été à la plage", "cp1252 (guessed)"),
        ("数据分析报告，第二页\n".encode("gbk"), "数据分析报告，第二页", "gb18030 (guessed)"),
        (b"a\r\nb\r\n", "a\n2\tb", ""),
    ],
)
async def test_encodings(harness: Harness, data: bytes, text: str, encoding: str) -> None:
    harness.write("file.txt", data)
    result = await harness.run("read_file", path="file.txt")
    assert result.text == f"1\t{text}" + (f"\n[encoding: {encoding}]" if encoding else "")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG\r\n\x1a\n123", "begins like a picture"),
        (b"%PDF-1.7", "as a PDF"),
        (bytes(range(256)), "a binary file"),
    ],
)
async def test_binary_files_are_refused_kindly(harness: Harness, data: bytes, said: str) -> None:
    harness.write("thing", data)
    result = await harness.run("read_file", path="thing")
    assert result.is_error
    assert said in result.text


async def test_a_missing_file_names_the_nearest(harness: Harness) -> None:
    harness.write("src/settings.py", "")
    harness.write("deep/down/config.yaml", "")
    assert "Nearest: src/settings.py" in (await harness.run("read_file", path="src/setings.py")).text
    assert "deep/down/config.yaml" in (await harness.run("read_file", path="config.yaml")).text


async def test_folders_pipes_and_devices(harness: Harness) -> None:
    (harness.root / "folder").mkdir()
    os.mkfifo(harness.root / "pipe")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(os.fspath(harness.root / "socket"))
    assert "list_files" in (await harness.run("read_file", path="folder")).text
    assert "is a pipe" in (await harness.run("read_file", path="pipe")).text
    assert "is a pipe, socket" in (await harness.run("read_file", path="socket")).text


async def test_long_lines_and_long_files_are_bounded(harness: Harness) -> None:
    harness.write("long.txt", "x" * 100_000 + "\n" + "y\n" * 50_000)
    result = await harness.run("read_file", path="long.txt")
    assert len(result.text) < 30_000
    assert "[line cut at 2000 characters]" in result.text
    assert "go on with offset=2001" in result.text


async def test_a_huge_file_is_read_in_part(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_tui.tools.builtin.files.MAX_BYTES", 1_000)
    harness.write("huge.log", "z" * 300_000 + "\nsecond\n" + "more\n" * 1_000)
    result = await harness.run("read_file", path="huge.log", offset=2, limit=2)
    assert result.text == "2\tsecond\n3\tmore\n[lines 2-3, more follow; go on with offset=4]"
    assert (await harness.run("read_file", path="huge.log", offset=1_002)).text == "1002\tmore"
    result = await harness.run("read_file", path="huge.log", offset=1_003)
    assert result.is_error
    assert "huge.log has 1002 lines; line 1003 is beyond its end." in result.text


def wait_until_open(path: Path) -> None:
    while not any(file.path == str(path) for file in psutil.Process().open_files()):
        pass


async def test_reading_a_huge_file_ends_with_the_call(harness: Harness) -> None:
    huge = harness.write("huge.log", b"first\n" * 15_000)
    os.truncate(huge, 100_000_000_000)
    call = asyncio.ensure_future(harness.run("read_file", path="huge.log", offset=20_000))
    await asyncio.to_thread(wait_until_open, huge)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_a_new_file_with_its_folders(harness: Harness) -> None:
    result = await harness.run("write_file", path="new/deep/a.py", content="x = 1\ny = 2\n")
    assert (harness.root / "new/deep/a.py").read_text() == "x = 1\ny = 2\n"
    assert result.display == Diff("new/deep/a.py", None, "x = 1\ny = 2\n")
    assert result.summary == "+2 -0"
    edit = await harness.run("edit_file", path="new/deep/a.py", old_string="x = 1", new_string="x = 3")
    assert not edit.is_error, "what was just written need not be read"


async def test_unread_and_stale_files_are_not_overwritten(harness: Harness) -> None:
    file = harness.write("a.txt", "mine\n")
    blind = await harness.run("write_file", path="a.txt", content="theirs\n")
    assert "has not been read" in blind.text
    assert "not been read" in (await harness.run("edit_file", path="a.txt", old_string="mine", new_string="x")).text
    await harness.run("read_file", path="a.txt")
    file.write_text("changed meanwhile\n")
    for name, args in (("write_file", {"content": "x"}), ("edit_file", {"old_string": "meanwhile", "new_string": "x"})):
        stale = await harness.run(name, path="a.txt", **args)
        assert "has changed since it was read" in stale.text
    assert file.read_text() == "changed meanwhile\n"
    await harness.run("read_file", path="a.txt")
    assert not (await harness.run("write_file", path="a.txt", content="now\n")).is_error
    assert file.read_text() == "now\n"


def test_a_change_just_before_the_write_is_noticed(tmp_path: Path) -> None:
    file = tmp_path.resolve() / "a.txt"
    file.write_bytes(b"someone else's")
    with pytest.raises(ToolFailure) as caught:
        disk.write_bytes(file, b"ours", before=b"what we saw", shown="a.txt")
    assert "changed by someone else" in str(caught.value)
    assert file.read_bytes() == b"someone else's"
    with pytest.raises(ToolFailure):
        disk.write_bytes(file, b"ours", before=None, shown="a.txt")
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"], "no temporary file is left"


def test_a_failed_write_leaves_no_folders(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure):
        disk.write_bytes(tmp_path / "new" / "deep" / ("x" * 300), b"ours", before=None, shown="x")
    assert not list(tmp_path.iterdir())


async def test_edits_at_the_same_time_all_arrive(harness: Harness) -> None:
    names = [f"name{number:02}" for number in range(20)]
    file = harness.write("a.txt", "\n".join(names))
    await harness.run("read_file", path="a.txt")
    edits = [{"path": "a.txt", "old_string": name, "new_string": name.upper()} for name in names]
    await asyncio.gather(*(harness.tools["edit_file"].run(args, Call("call", harness.branch)) for args in edits))
    assert file.read_text() == "\n".join(names).upper()


async def test_text_that_is_no_unicode_is_refused(harness: Harness) -> None:
    file = harness.write("a.txt", "one\n")
    await harness.run("read_file", path="a.txt")
    for name, args in (
        ("write_file", {"content": "\ud800"}),
        ("edit_file", {"old_string": "one", "new_string": "\ud800"}),
    ):
        assert (await harness.run(name, path="a.txt", **args)).summary == "bad arguments"
    assert file.read_text() == "one\n"


async def test_a_file_of_two_names_changes_under_one(harness: Harness) -> None:
    (harness.root / "b.txt").hardlink_to(harness.write("a.txt", "one\n"))
    await harness.run("read_file", path="a.txt")
    result = await harness.run("edit_file", path="a.txt", old_string="one", new_string="two")
    assert result.text.endswith("Note: the same file under 1 other name keeps what it held.")
    assert (harness.root / "b.txt").read_text() == "one\n"


async def test_a_read_only_file_stays_as_it_is(harness: Harness) -> None:
    file = harness.write("a.txt", "one\n")
    await harness.run("read_file", path="a.txt")
    file.chmod(0o444)
    for name, args in (
        ("write_file", {"content": "two\n"}),
        ("edit_file", {"old_string": "one", "new_string": "two"}),
    ):
        assert "a.txt is read-only" in (await harness.run(name, path="a.txt", **args)).text
    assert file.read_text() == "one\n"
    assert list(harness.root.iterdir()) == [file]


@pytest.mark.skipif(sys.platform != "linux", reason="Python knows them on Linux alone")
async def test_what_is_noted_at_a_file_is_kept(harness: Harness) -> None:
    file = harness.write("a.txt", "one\n")
    try:
        os.setxattr(file, "user.origin", b"here")
    except OSError:
        pytest.skip("this file system keeps no notes")
    await harness.run("read_file", path="a.txt")
    await harness.run("edit_file", path="a.txt", old_string="one", new_string="two")
    assert os.getxattr(file, "user.origin") == b"here"


async def test_the_mode_is_kept(harness: Harness) -> None:
    script = harness.write("run.sh", "#!/bin/sh\necho old\n")
    script.chmod(0o755)
    await harness.run("read_file", path="run.sh")
    await harness.run("edit_file", path="run.sh", old_string="old", new_string="new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert script.read_text() == "#!/bin/sh\necho new\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\nc", b"a\r\nB1\r\nB2\r\nc"),
        (b"a\nb\r\nc\n", b"a\nB1\r\nB2\r\nc\n"),
        (b"a\r\nb\nc\r\n", b"a\r\nB1\nB2\nc\r\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nB1\nB2\n"),
        ("é\nb\n".encode("utf-16"), "é\nB1\nB2\n".encode("utf-16")),
        ("été à\nb\n".encode("cp1252"), "été à\nB1\nB2\n".encode("cp1252")),
        (b"a\rb\rc", b"a\rB1\rB2\rc"),
    ],
)
async def test_line_ends_marks_and_encodings_stay(harness: Harness, before: bytes, after: bytes) -> None:
    file = harness.write("a.txt", before)
    await harness.run("read_file", path="a.txt")
    result = await harness.run("edit_file", path="a.txt", old_string="b", new_string="B1\nB2")
    assert file.read_bytes() == after, result.text


async def test_windows_line_ends_in_the_arguments_do_not_matter(harness: Harness) -> None:
    file = harness.write("a.txt", b"one\r\ntwo\r\nthree\r\n")
    await harness.run("read_file", path="a.txt")
    await harness.run("edit_file", path="a.txt", old_string="one\ntwo\n", new_string="one\r\n2\r\n")
    assert file.read_bytes() == b"one\r\n2\r\nthree\r\n"
    await harness.run("write_file", path="a.txt", content="x\ny\n")
    assert file.read_bytes() == b"x\r\ny\r\n"


async def test_a_character_the_encoding_lacks(harness: Harness) -> None:
    file = harness.write("a.txt", "un été\n".encode("cp1252"))
    await harness.run("read_file", path="a.txt")
    result = await harness.run("edit_file", path="a.txt", old_string="un", new_string="一")
    assert "cp1252" in result.text
    assert file.read_bytes() == "un été\n".encode("cp1252")
    assert "UTF-8 now" in (await harness.run("write_file", path="a.txt", content="一\n")).text
    assert file.read_text("utf-8") == "一\n"


async def test_the_preview_is_the_diff_that_follows(harness: Harness) -> None:
    harness.write("a.txt", "one\ntwo\n")
    await harness.run("read_file", path="a.txt")
    args = {"path": "a.txt", "old_string": "two", "new_string": "2"}
    preview = harness.tools["edit_file"].preview
    assert preview is not None
    shown = await preview(args)
    assert shown == Diff("a.txt", "one\ntwo\n", "one\n2\n")
    assert (await harness.run("edit_file", **args)).display == shown


async def test_a_diff_of_a_large_file_shows_the_surroundings(harness: Harness) -> None:
    harness.write("big.txt", "".join(f"line number {number}\n" for number in range(30_000)))
    await harness.run("read_file", path="big.txt")
    result = await harness.run("edit_file", path="big.txt", old_string="number 15000\n", new_string="here\n")
    assert isinstance(result.display, Diff)
    assert len(result.display.after) < 10_000
    assert result.summary == "+1 -1"


async def test_a_tolerant_match_says_so(harness: Harness) -> None:
    harness.write("a.py", "if a:\n    first()\n    second()\n")
    await harness.run("read_file", path="a.py")
    result = await harness.run("edit_file", path="a.py", old_string="first()\nsecond()", new_string="first()\nthird()")
    assert "different white space" in result.text
    assert (harness.root / "a.py").read_text() == "if a:\n    first()\n    third()\n"


async def test_a_link_is_followed_and_stays_a_link(harness: Harness) -> None:
    harness.write("real/a.txt", "one\n")
    (harness.root / "link.txt").symlink_to("real/a.txt")
    await harness.run("read_file", path="link.txt")
    result = await harness.run("edit_file", path="link.txt", old_string="one", new_string="two")
    assert "real/a.txt" in result.text
    assert (harness.root / "link.txt").is_symlink()
    assert (harness.root / "real/a.txt").read_text() == "two\n"


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_that_comes_in_between_is_not_followed(tmp_path: Path, swapped: str) -> None:
    root = tmp_path.resolve()
    for place in ("inside", "outside"):
        (root / place).mkdir()
        (root / place / "a.txt").write_bytes(b"before")
    path = root / "inside" / "a.txt"
    if swapped == "file":
        path.unlink()
        path.symlink_to(root / "outside" / "a.txt")
    else:
        (root / "inside").rename(root / "elsewhere")
        (root / "inside").symlink_to(root / "outside")
    with pytest.raises(ToolFailure):
        disk.write_bytes(path, b"after", before=b"before", shown="a.txt")
    with pytest.raises(ToolFailure):
        disk.read_bytes(path, "a.txt")
    assert (root / "outside" / "a.txt").read_bytes() == b"before"


async def test_a_folder_without_rights(harness: Harness) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    harness.write("closed/a.txt", "x")
    (harness.root / "closed").chmod(0o500)
    result = await harness.run("write_file", path="closed/b.txt", content="x")
    (harness.root / "closed").chmod(0o700)
    assert "does not allow" in result.text


@given(st.binary(max_size=200))
def test_every_file_survives_being_read_and_written(data: bytes) -> None:
    encoding = detect(data)
    assert encoding.encode(encoding.decode(data)) == data


TEXTS = st.lists(
    st.text("abé", max_size=5).flatmap(lambda line: st.sampled_from([f"{line}\n", f"{line}\r\n"])), max_size=6
)


@given(TEXTS.map("".join), st.integers(0, 10), st.integers(1, 12), st.text("xy\n", max_size=6))
def test_bytes_outside_an_edit_stay(tmp_path: Path, text: str, start: int, size: int, new: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    plain = plain_lines(text)
    old = plain[start : start + size]
    seen = SeenFiles()
    seen.note(file.resolve(), text.encode())
    try:
        args = {"path": str(file), "old_string": old, "new_string": new}
        change = planned_edit(Workspace(tmp_path), seen, args)
    except ToolFailure:
        return
    if change.note:
        return
    positions = Positions(text)
    at = plain.index(old)
    assert change.new_text.startswith(text[: positions.raw(at)])
    assert change.new_text.endswith(text[positions.raw(at + len(old)) :])
    if "\n" in change.new_text:
        assert plain_lines(change.new_text) == plain.replace(old, new)
