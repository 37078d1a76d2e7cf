"""Standard streams that fail or keep silent: narration is dropped, lost output ends the run, silent input is told."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ba_tui.cli.streams import LARGEST_INPUT, WAITING
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


def test_an_input_without_end_is_refused(ba: Program):
    with Path("/dev/zero").open() as zero:
        code, out, err = ended(ba.start(*ANSWER, stdin=zero))
    assert (code, out) == (1, "")
    assert f"larger than {LARGEST_INPUT // 1_000_000} MB" in err
    assert ba.journals() == []
