"""What is loaded when: a start must not pay for what it does not use. Each case is a process of its own.

Which file may import what is judged in test_shape.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.providers.scripted import Step
from tests.bench.terminal import Terminal
from tests.house.first_paint import SIGN
from tests.loopback import ModelServer

CHECKOUT = Path(__file__).resolve().parents[2]
LATER = {
    "ba_tui.features.data.analysis.calendars",
    "ba_tui.features.data.analysis.charts.describing",
    "ba_tui.features.data.analysis.comparison",
    "ba_tui.features.data.analysis.forecasting",
    "ba_tui.features.data.analysis.grounding.evidence_thread",
    "ba_tui.features.data.analysis.kernel",
    "ba_tui.features.data.analysis.metrics.check",
    "ba_tui.features.data.analysis.metrics.use",
    "ba_tui.plotting",
    "ba_tui.context.compression.extract",
    "ba_tui.context.compression.fact_check",
    "ba_tui.permissions.shell.resolved_command",
    "ba_tui.permissions.shell.judgement",
    "ba_tui.permissions.shell.walk.walker",
    "ba_tui.processes.children",
    "ba_tui.processes.worker",
    "ba_tui.sessions.checkpoints.restoring",
    "ba_tui.agent_files.agent_file",
    "ba_tui.agent_files.reading",
    "ba_tui.agent_files.tool_names",
    "tomllib",
    "ba_tui.sessions.forks",
    "ba_tui.sessions.search.fulltext",
    "ba_tui.tools.builtin.arithmetic",
    "ba_tui.tools.editing.hunks",
    "ba_tui.tools.editing.matching",
    "ba_tui.tools.editing.notebooks",
    "ba_tui.tools.editing.patches",
    "ba_tui.tools.builtin.history_search",
    "ba_tui.tools.builtin.pdf",
    "ba_tui.tools.own.worker_tools",
    "purgatory",
    "pydantic_settings",
    "sqlite3",
    "tree_sitter",
}
"""What comes in when it is first needed, and an answer without tools needs none of it."""
RUN = """
import sys
sys.argv = ["ba", *sys.argv[1:]]
from ba_tui.__main__ import main
code = main()
sys.stderr.write("\\nLOADED " + " ".join(sorted(sys.modules)))
sys.exit(code)
"""


def loaded_by(tmp_path: Path, *argv: str, **env: str) -> set[str]:
    """The modules that ``ba ARGV`` has loaded when it ends, and the packages that they are in."""
    whole = {**os.environ, "BA_HOME": str(tmp_path / "home"), **env}
    command = [sys.executable, "-c", RUN, *argv]
    done = subprocess.run(
        command, cwd=tmp_path, env=whole, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = done.stderr.partition("\nLOADED ")[2].split()
    return {*names, *(name.partition(".")[0] for name in names)}


def test_the_version_costs_no_import(tmp_path: Path) -> None:
    heavy = {"typer", "rich", "textual", "pydantic", "yaml", "anthropic", "openai", "asyncio"}
    assert loaded_by(tmp_path, "--version") & heavy == set()


def test_a_list_of_sessions_needs_neither_the_app_nor_an_sdk(tmp_path: Path) -> None:
    assert loaded_by(tmp_path, "sessions", "list") & {"textual", "anthropic", "openai", "chromadb"} == set()


def test_print_mode_never_loads_the_app(tmp_path: Path) -> None:
    with ModelServer([Step(say="Hello.")]) as server:
        loaded = loaded_by(
            tmp_path, "-p", "hello", BA_MODEL="anthropic/test", ANTHROPIC_API_KEY="test", ANTHROPIC_BASE_URL=server.url
        )
    assert "httpx2" in loaded
    assert loaded & {"textual", "chromadb", "anthropic", "openai", "tiktoken", "typer", "pydantic"} == set()
    assert loaded & LATER == set()


@pytest.mark.parametrize("flags", ["", "--trust --permission-mode plan"])
def test_the_first_paint_waits_for_nothing_heavy(tmp_path: Path, flags: str) -> None:
    note = tmp_path / "note"
    env = {
        "BA_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(CHECKOUT),
        "TEXTUAL_DRIVER": "tests.house.first_paint:NotingDriver",
        "FIRST_PAINT_NOTE": str(note),
        "ANTHROPIC_API_KEY": "test",
    }
    with Terminal([sys.executable, "-m", "ba_tui", *flags.split()], tmp_path, env) as terminal:
        terminal.until(lambda screen: SIGN in screen and note.exists())
    names = note.read_text("utf-8").split()
    loaded = {*names, *(name.partition(".")[0] for name in names)}
    heavy = {
        "anthropic",
        "openai",
        "chromadb",
        "tiktoken",
        "pydantic",
        "pydantic_settings",
        "jsonschema",
        "yaml",
        "typer",
        "ba_tui.assembly",
        "ba_tui.core.events",
        "ba_tui.core.conversation",
    }
    assert "textual" in loaded
    assert loaded & heavy == set()


def test_the_transcript_loads_nothing_heavy_before_the_first_answer() -> None:
    code = (
        "import sys, ba_tui.faces.tui.transcript.view;"
        "heavy = {'pydantic', 'yaml', 'anthropic', 'openai', 'markdown_it', 'pygments', 'typer', 'jsonschema'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
