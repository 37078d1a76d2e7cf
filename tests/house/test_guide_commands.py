"""The commands of the README and the guide are run, block by block, against a scripted model on loopback."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.resources import bundled
from tests.house.pages import Block, blocks
from tests.loopback import ModelServer
from tests.program import Program

RUN = [block for block in blocks("sh") if block.runs]
ANSWERS = 40
SHELL = re.compile(r"[<>|*&$]")
"""A line with one of these, outside of quotation marks, is left to bash."""


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer([Step(say="The sales notes say so.")] * ANSWERS) as server:
        yield server


@pytest.fixture
def ba(tmp_path: Path, server: ModelServer) -> Program:
    """A trusted folder with the sample data, and a session about it."""
    home, bin = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    bin.mkdir()
    (bin / "ba").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ba_tui "$@"\n')
    (bin / "ba").chmod(0o755)
    folder = Path(shutil.copytree(bundled("config") / "demo" / "data", tmp_path / "sales"))
    (folder / "changes.diff").write_text("-amount\n+price\n")
    env = {
        "ANTHROPIC_API_KEY": "test",
        "ANTHROPIC_BASE_URL": server.url,
        "BA_MODEL": "anthropic/test",
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
    }
    ba = Program(folder, home, env)
    assert ba.here("trust", "--yes").returncode == 0
    return ba


@pytest.mark.parametrize("block", RUN, ids=lambda block: block.name)
def test_the_commands_of_a_block_run(ba: Program, block: Block) -> None:
    for other in blocks("yaml", block.document):
        if other.file:
            (ba.folder / other.file).write_text(other.text, "utf-8")
    if "ID" in block.text:
        with ModelServer(
            [Step(calls=(ScriptedCall("read_file", {"path": "notes.md"}),)), Step(say="They do.")]
        ) as server:
            begun = replace(ba, env={**ba.env, "ANTHROPIC_BASE_URL": server.url})
            assert begun.here("-p", "What do the sales notes say?").returncode == 0
    for line in block.text.replace("\\\n", "").splitlines():
        if line.strip() and not line.startswith("#"):
            done = _run(ba, line)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def _run(ba: Program, line: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(line, comments=True)
    sessions = [path.parent.name for path in ba.journals()]
    words = [sessions[0] if word == "ID" and sessions else word for word in words]
    if words[0] == "ba" and not SHELL.search(re.sub(r"""'[^']*'|"[^"]*\"""", "", line.partition(" # ")[0])):
        return ba.here(*words[1:])
    return subprocess.run(
        ["bash", "-c", line],
        cwd=ba.folder,
        env=ba.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_enough_blocks_run() -> None:
    """A comment on every block would make all of this pass."""
    assert len(RUN) >= 20
