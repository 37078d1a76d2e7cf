"""Stored results: the same content once, read in parts of any size, noted whatever dies in between, shared by forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.tools import Reader
from ba_tui.core.results import Kind
from ba_tui.sessions.artifacts import UNFINISHED, Artifacts, read_note
from tests.sessions.shelf import folder_of, library, stored, turn

ID = "20260101-000000-ab12"
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def shelf(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "session" / "data")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "session" / "data").iterdir())


def test_a_result_is_stored_once_and_read_back(shelf: Artifacts, tmp_path: Path) -> None:
    reader: Reader = shelf
    first = shelf.store("héllo\nworld", call_id="c1", tool="shell")
    second = shelf.store("héllo\nworld".encode(), call_id="c2", tool="grep")
    assert first == second == reader.about(first.ref)
    assert (first.size, first.lines, first.kind, first.expired) == (12, 2, "text", False)
    assert first.ref == f"data/{shelf.path(first.ref).name}"
    assert shelf.path(first.ref).read_bytes() == "héllo\nworld".encode()
    name = shelf.path(first.ref).name
    assert files(tmp_path) == [name, f"{name}.json"]
    note = read_note(tmp_path / "session" / "data", name)
    assert note
    assert [(maker.call, maker.tool) for maker in note.made] == [("c1", "shell"), ("c2", "grep")]
    for path in (tmp_path / "session" / "data").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "session" / "data").stat().st_mode & 0o777 == 0o700


def test_nothing_is_made_before_the_first_result(tmp_path: Path) -> None:
    Artifacts(tmp_path / "session" / "data")
    assert not (tmp_path / "session").exists()


@given(st.text() | st.text("é\n\U0001f600a"), st.integers(0, 40), st.integers(1, 30))
def test_pages_one_after_the_other_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, limit: int, count: int
) -> None:
    shelf = Artifacts(tmp_path_factory.mktemp("pages") / "data")
    data = text.encode("utf-8", "replace")
    whole = data.decode()
    ref = shelf.store(text).ref
    parts, offset = "", 0
    while True:
        page = shelf.read(ref, offset, limit)
        assert page.offset == offset
        assert page.line == data[:offset].count(b"\n") + 1
        parts += page.text
        offset = page.upto
        if page.last:
            break
    assert parts == whole
    lines = whole.split("\n")
    start = 1
    while not (page := shelf.lines(ref, start, count)).last:
        assert page.text == "".join(f"{line}\n" for line in lines[start - 1 : start - 1 + count])
        start += count


def test_a_page_never_begins_within_a_character(shelf: Artifacts) -> None:
    ref = shelf.store("a€b\U0001f600").ref
    assert [shelf.read(ref, offset, 100).text[0] for offset in range(9)] == list(
        "a€€€b\U0001f600\U0001f600\U0001f600\U0001f600"
    )
    assert shelf.read(ref, 99, 10).text == ""
    raw = shelf.store(b"\x80\x81\xff\xe2\x82").ref
    assert shelf.read(raw, 1, 4).offset == 1
    assert shelf.read(raw, 4, 4).last


def test_a_line_longer_than_a_page_goes_on_by_bytes(shelf: Artifacts) -> None:
    ref = shelf.store("one\n" + "x" * 1_000 + "\nlast\n").ref
    page = shelf.lines(ref, 2, 1, 100)
    assert (page.text, page.upto, page.last) == ("x" * 100, 104, False)
    assert shelf.read(ref, page.upto, 10_000).text == "x" * 900 + "\nlast\n"
    assert shelf.lines(ref, 1, 50, 100).text == "one\n", "no half line where whole ones fit"
    assert shelf.lines(ref, 9).text == ""


def test_far_lines_of_a_large_file(shelf: Artifacts) -> None:
    with shelf.open("c", "shell") as spill:
        for start in range(0, 400_000, 1_000):
            spill.write("".join(f"line {number}\n" for number in range(start, start + 1_000)).encode())
        artifact = spill.finish()
    assert artifact.lines == 400_000
    for number in (399_999, 0, 123_456, 250_000, 1):
        page = shelf.lines(artifact.ref, number + 1, 1)
        assert page.text == f"line {number}\n"
        assert shelf.read(artifact.ref, page.offset, 4).line == number + 1
    assert shelf.lines(artifact.ref, 400_001).line == 400_001
    hits = shelf.search(artifact.ref, "LINE 99999", 3)
    assert [hit.line for hit in hits] == [100_000, 200_000, 300_000]
    assert shelf.read(artifact.ref, hits[1].offset, 11).text == "line 199999"
    assert [hit.line for hit in shelf.search(artifact.ref, "99999", 1, start=300_001)] == [400_000]


def test_words_are_searched_whatever_their_case_and_order(shelf: Artifacts) -> None:
    ref = shelf.store(f"Ärger im Büro\nbüro\n{'x' * 900} ärger büro {'y' * 900}\n\n").ref
    hits = shelf.search(ref, "büro ÄRGER")
    assert [hit.line for hit in hits] == [1, 3]
    assert "ärger büro" in hits[1].text
    assert len(hits[1].text) < 310
    assert shelf.search(ref, "  ") == []
    assert shelf.search(ref, "nowhere") == []


def test_a_line_without_end_is_searched_within_bounds(shelf: Artifacts) -> None:
    with shelf.open() as spill:
        for _ in range(9):
            spill.write(b"x" * 1_000_000)
        spill.write(b"needle")
        ref = spill.finish().ref
    (hit,) = shelf.search(ref, "needle")
    assert hit.line == 1
    assert hit.text.endswith("needle")


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "data/",
        "data/x",
        "../data/" + "a" * 32,
        f"data/{'A' * 32}",
        f"data/{'a' * 32}/..",
        f"/data/{'a' * 32}",
        "data/" + "a" * 32 + "\n",
    ],
)
def test_what_is_no_reference_is_refused(shelf: Artifacts, ref: str) -> None:
    with pytest.raises(StorageError, match="no reference"):
        shelf.about(ref)
    with pytest.raises(StorageError, match="no reference"):
        shelf.read(ref)


def test_references_of_other_sessions_and_links_are_refused(shelf: Artifacts, tmp_path: Path) -> None:
    ref = Artifacts(tmp_path / "other" / "data").store("theirs").ref
    with pytest.raises(StorageError, match="no result"):
        shelf.path(ref)
    shelf.store("ours")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "session" / ref).symlink_to(secret)
    with pytest.raises(StorageError, match="can't be read"):
        shelf.read(ref)


def damage(note: Path, text: str | None) -> None:
    if text is None:
        note.unlink()
    else:
        note.write_text(text)


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", "null", '{"size": 3}', '{"size": 1, "lines": 1, "kind": "KIND", "summary": "x"}',
     '{"size": "12", "lines": 2, "kind": "odd", "summary": 5}'],
)  # fmt: skip
@pytest.mark.parametrize(("data", "kind"), [("[1, 2, 3]", "json"), ("a\nb\nc", "text")])
def test_a_lost_or_broken_note_is_made_anew(tmp_path: Path, text: str | None, data: str, kind: Kind) -> None:
    made = Artifacts(tmp_path / "data").store(data, kind=kind)
    note = tmp_path / f"{made.ref}.json"
    damage(note, text and text.replace("KIND", kind))
    again = Artifacts(tmp_path / "data")
    assert again.about(made.ref) == made
    assert json.loads(note.read_text())["size"] == made.size
    assert again.read(made.ref).text == data


def test_a_file_that_is_not_what_its_name_says_is_not_read(tmp_path: Path) -> None:
    shelf = Artifacts(tmp_path / "data")
    made = shelf.store("correct")
    (tmp_path / made.ref).write_text("cut")
    with pytest.raises(StorageError, match="damaged"):
        shelf.read(made.ref)
    assert shelf.store("correct") == made, "storing it again heals it"
    assert shelf.read(made.ref).text == "correct"


def test_what_is_gone_is_still_known(tmp_path: Path) -> None:
    shelf = Artifacts(tmp_path / "data")
    made = shelf.store("a,b\n1,2\n", kind="table")
    (tmp_path / made.ref).unlink()
    about = Artifacts(tmp_path / "data").about(made.ref)
    assert about.expired
    assert (about.kind, about.summary) == ("table", made.summary)
    with pytest.raises(StorageError, match="expired"):
        shelf.read(made.ref)


def test_a_spill_that_is_left_leaves_nothing(shelf: Artifacts, tmp_path: Path) -> None:
    with shelf.open() as spill:
        spill.write(b"abc")
    assert files(tmp_path) == []
    with pytest.raises(StorageError):
        spill.write(b"more")
    with pytest.raises(StorageError):
        spill.finish()
    with pytest.raises(KeyError), shelf.open() as spill:
        raise KeyError
    assert files(tmp_path) == []


def test_an_empty_result(shelf: Artifacts) -> None:
    made = shelf.store("")
    assert (made.size, made.lines) == (0, 0)
    assert shelf.read(made.ref).last
    assert shelf.lines(made.ref).text == ""


def test_many_at_once(shelf: Artifacts, tmp_path: Path) -> None:
    texts = [f"content {number % 7}\n" * 50 for number in range(70)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda pair: shelf.store(pair[1], call_id=str(pair[0])), enumerate(texts)))
    assert len({artifact.ref for artifact in made}) == 7
    for artifact, text in zip(made, texts, strict=True):
        assert shelf.read(artifact.ref).text == text
        note = read_note(tmp_path / "session" / "data", artifact.ref.partition("/")[2])
        assert note
        assert len(note.made) == 10
    assert len(files(tmp_path)) == 14


KILLED = """
import os, sys
from pathlib import Path
import ba_tui.sessions.artifacts as artifacts
shelf = artifacts.Artifacts(Path(sys.argv[1]))
if sys.argv[2] == "before the name":
    spill = shelf.open("c", "t")
    spill.write(b"half of it")
    spill._file.flush()
    os._exit(9)
real = artifacts.save_whole
def save(path, *rest, **more):
    if any(artifacts.NAME.fullmatch(p.name) for p in Path(sys.argv[1]).iterdir()):
        os._exit(9)
    return real(path, *rest, **more)
artifacts.save_whole = save
shelf.store("all of it\\n", call_id="c", tool="t")
"""


@pytest.mark.parametrize("when", ["before the name", "before the note"])
def test_killed_while_storing(tmp_path: Path, when: str) -> None:
    folder = tmp_path / "data"
    run = subprocess.run([sys.executable, "-c", KILLED, str(folder), when], cwd=CHECKOUT, check=False)
    assert run.returncode == 9
    left = [path for path in folder.iterdir() if path.name.startswith(UNFINISHED)]
    data = [path for path in folder.iterdir() if path not in left]
    if when == "before the note":
        about = Artifacts(folder).about(f"data/{data[0].name}")
        assert (about.size, about.lines) == (10, 1)
        return
    assert data == []
    os.utime(left[0], (0, 0))
    Artifacts(folder).store("x")
    assert not left[0].exists(), "what nobody holds is removed"


def test_what_is_being_written_is_not_taken_for_left_over(tmp_path: Path) -> None:
    with Artifacts(tmp_path / "data").open() as spill:
        spill.write(b"abc")
        (unfinished,) = (tmp_path / "data").iterdir()
        os.utime(unfinished, (0, 0))
        Artifacts(tmp_path / "data").store("x")
        assert unfinished.exists()
        spill.finish()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the way")
    with pytest.raises(StorageError, match="can't be kept"):
        Artifacts(tmp_path / "data").store("x")


def test_a_fork_reads_what_it_refers_to(tmp_path: Path) -> None:
    stored(tmp_path, ID, turn("one"))
    made = Artifacts(folder_of(tmp_path, ID) / "data").store("the whole", call_id="c")
    sessions = library(tmp_path)
    copied = sessions.fork(ID)
    theirs = Artifacts(folder_of(tmp_path, copied.id) / "data")
    assert theirs.about(made.ref) == made
    sessions.delete(ID)
    assert not folder_of(tmp_path, ID).exists()
    assert theirs.read(made.ref).text == "the whole"
    theirs.store("more")
    sessions.delete(copied.id)
    assert not folder_of(tmp_path, copied.id).exists()


def test_a_fork_takes_results_only(tmp_path: Path) -> None:
    stored(tmp_path, ID, turn("one"))
    folder = folder_of(tmp_path, ID) / "data"
    made = Artifacts(folder).store("the whole")
    (folder / f"{UNFINISHED}1").write_text("half")
    (folder / ("f" * 32)).symlink_to(tmp_path)
    copied = folder_of(tmp_path, library(tmp_path).fork(ID).id) / "data"
    name = made.ref.partition("/")[2]
    assert sorted(path.name for path in copied.iterdir()) == [name, f"{name}.json"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in copied.iterdir())


MEMORY = """
import sys, resource, threading
from pathlib import Path
from ba_tui.sessions.artifacts import Artifacts
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
shelf = Artifacts(Path(sys.argv[1]), 1_000_000_000)
block = b"".join(b"line %d of many\\n" % number for number in range(60_000))
before = peak()
with shelf.open("c", "shell") as spill:
    while spill.size < int(sys.argv[2]):
        spill.write(block)
    made = spill.finish()
shelf.lines(made.ref, made.lines - 10, 5)
shelf.search(made.ref, "not there")
print(made.size, peak() - before)
"""


def test_a_hundred_megabytes_cost_little_memory(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "data"), "100_000_000"],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
    )
    size, extra = map(int, run.stdout.split())
    assert size >= 100_000_000
    assert extra < 30_000_000


def test_readers_share_what_was_counted(shelf: Artifacts) -> None:
    ref = shelf.store("".join(f"{number}\n" for number in range(500_000))).ref
    wrong: list[int] = []

    def look(step: int) -> Callable[[], None]:
        def work() -> None:
            wrong.extend(n for n in range(step, 500_000, 50_000) if shelf.lines(ref, n + 1, 1).text != f"{n}\n")

        return work

    threads = [threading.Thread(target=look(step)) for step in (0, 7, 49_999)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_of_a_huge_result_head_and_tail_are_stored(tmp_path: Path) -> None:
    shelf = Artifacts(tmp_path / "data", 8_000)
    data = b"".join(b"line %06d\n" % number for number in range(10_000))
    with shelf.open("call", "shell") as spill:
        for start in range(0, len(data), 777):
            spill.write(data[start : start + 777])
        left, stored = spill.left_out, spill.finish("text")
    assert left == len(data) - 8_000
    kept = (tmp_path / stored.ref).read_bytes()
    assert kept == data[:7_000] + f"\n[… {left:,} bytes are left out here …]\n".encode() + data[-1_000:]
    assert (stored.size, shelf.about(stored.ref)) == (len(kept), stored)
    assert shelf.store(data[:8_000]).size == 8_000
