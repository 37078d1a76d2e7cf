"""Standard streams that fail or keep silent: narration is dropped, lost output ends the run, silent input is told."""

from __future__ import annotations

import io
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ba_tui.cli.streams import LARGEST_INPUT, LIMIT_VARIABLE, WAITING, StandardInput, write_output
from ba_tui.core.errors import StorageError
from tests.cli.test_main import ba
from tests.program import Program

__all__ = ["ba"]
FORMATS = ["text", "json", "stream-json"]
ANSWER = ("-p", "-m", "scripted:hello.yaml", "hi")
full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")


@pytest.fixture
def lost() -> Iterator[Callable[[str], int]]:
    """Makes descriptors that can't be written."""
    made: list[int] = []

    def new(kind: str) -> int:
        if kind == "full":
            made.append(os.open("/dev/full", os.O_WRONLY))
        else:
            reader, writer = os.pipe()
            os.close(reader)
            made.append(writer)
        return made[-1]

    yield new
    for number in made:
        os.close(number)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@full_device
@pytest.mark.parametrize("kind", ["full", "pipe"])
@pytest.mark.parametrize("format", FORMATS)
def test_narration_that_can_not_be_written_is_dropped(ba: Program, lost: Callable[[str], int], format: str, kind: str):
    (ba.folder / "hello.yaml").write_text("steps: [{calls: [{tool: now}]}, {say: Hello there.}]\n")
    code, out, _ = ended(ba.start(*ANSWER, "--output-format", format, stderr=lost(kind)))
    assert code == 0
    assert "Hello there." in out


@full_device
@pytest.mark.parametrize("kind", ["full", "pipe"])
@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_that_can_not_be_written_ends_the_run(
    ba: Program, lost: Callable[[str], int], format: str, kind: str
):
    code, _, err = ended(ba.start(*ANSWER, "--output-format", format, stdout=lost(kind)))
    assert code == 2
    assert err.startswith("ba: The output can't be written: ")
    assert err.count("\n") == 1
    # What was done by then is saved as a turn that ended.
    assert ba.events()[-1]["type"] == "turn_ended"


@full_device
@pytest.mark.parametrize(
    "args", [("--version",), ("--help",), ("config", "show"), ("sessions", "list", "--json"), ("nonsense?",)]
)
def test_commands_that_print_know_lost_streams(ba: Program, lost: Callable[[str], int], args: tuple[str, ...]):
    code, _, err = ended(ba.start(*args, stdout=lost("full")))
    assert (code, err.count("\n")) == ((2, 1) if args != ("nonsense?",) else (1, 1))
    assert ended(ba.start(*args, stderr=lost("full")))[0] == (1 if args == ("nonsense?",) else 0)


def silent(ba: Program) -> tuple[subprocess.Popen[str], int]:
    """``ba -p`` that has said that it waits, and the end of the pipe that it waits for."""
    reader, writer = os.pipe()
    process = ba.start(*ANSWER, stdin=reader)
    os.close(reader)
    assert process.stderr
    assert process.stderr.readline() == f"{WAITING}\n"
    return process, writer


def test_a_silent_input_is_told_and_read_to_its_end(ba: Program):
    process, writer = silent(ba)
    os.write(writer, b"One.\n")
    os.write(writer, "Zwölf\N{NO-BREAK SPACE}Wörter.".encode())
    os.close(writer)
    code, out, _ = ended(process)
    assert (code, out) == (0, "Hello there.\n")
    assert r'"hi\n\nOne.\nZwölf Wörter."' in ba.journals()[0].read_text(encoding="utf-8")


def test_a_silent_input_can_be_left(ba: Program):
    process, writer = silent(ba)
    process.send_signal(signal.SIGINT)
    assert ended(process)[:2] == (130, "")
    os.close(writer)


@pytest.mark.parametrize(
    ("sent", "said"), [("", "is open, and nothing came for"), ("One.", "stopped coming without an")]
)
def test_an_input_that_does_not_come_ends_the_wait(ba: Program, sent: str, said: str):
    reader, writer = os.pipe()
    os.write(writer, sent.encode())
    with os.fdopen(reader) as silence:
        code, out, err = ended(Program(ba.folder, ba.home, {LIMIT_VARIABLE: "0.1"}).start(*ANSWER, stdin=silence))
    os.close(writer)
    assert (code, out) == (1, "")
    assert f"Standard input {said}" in err
    assert "Add </dev/null to skip it, or set BA_INPUT_TIMEOUT=SECONDS to wait longer" in err
    assert ba.journals() == []


def test_a_writer_that_keeps_sending_is_read_whole():
    """The limit of the first byte has passed long before the end; each piece is waited for anew."""
    reader, writer = os.pipe()
    os.write(writer, b"0,")
    with io.BufferedReader(StandardInput(reader, (0.0, 60.0))) as pieces:
        for number in range(1, 50):
            assert pieces.read1() == f"{number - 1},".encode()
            os.write(writer, f"{number},".encode())
        os.close(writer)
        assert pieces.read() == b"49,"
    os.close(reader)


@pytest.mark.parametrize("given", ["soon", "-1", "inf", "nan"])
def test_a_limit_that_is_no_number_is_refused(ba: Program, given: str):
    done = Program(ba.folder, ba.home, {LIMIT_VARIABLE: given}).here(*ANSWER)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"BA_INPUT_TIMEOUT={given} is not a number of seconds." in done.stderr


def test_a_file_that_a_command_writes_is_the_old_or_the_new_one(tmp_path: Path):
    file, pipe = tmp_path / "result.csv", tmp_path / "pipe"
    file.write_text("old")

    def broken() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_output(file, broken())
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("result.csv", "old")]
    with pytest.raises(StorageError, match="could not be written"):
        write_output(tmp_path / "missing" / "\0", [b"new"])
    # What is no file is written to and stays what it is.
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(pipe, ["to ", b"a reader"])
    assert os.read(reader, 100) == b"to a reader"
    assert pipe.is_fifo()
    os.close(reader)


def test_an_input_without_end_is_refused(ba: Program):
    with Path("/dev/zero").open() as zero:
        code, out, err = ended(ba.start(*ANSWER, stdin=zero))
    assert (code, out) == (1, "")
    assert f"larger than {LARGEST_INPUT // 1_000_000} MB" in err
    assert ba.journals() == []
