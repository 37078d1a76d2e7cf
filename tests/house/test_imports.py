"""What is loaded when: a start must not pay for what it does not use. Each case is a process of its own.

Which file may import what is judged in test_shape.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from ba_tui.core.text.patterns import regex
from ba_tui.providers.scripted import Step
from tests.bench.terminal import Terminal
from tests.house.first_paint import SIGN
from tests.loopback import ModelServer

CHECKOUT = Path(__file__).resolve().parents[2]
LATER = {
    "ba_tui.features.data.analysis.calendars",
    "ba_tui.features.data.analysis.charts",
    "ba_tui.features.data.analysis.comparison",
    "ba_tui.features.data.analysis.forecast",
    "ba_tui.features.figures.session_evidence",
    "ba_tui.features.data.analysis.kernel",
    "ba_tui.features.data.analysis.metric_queries",
    "ba_tui.features.data.tools.data_tools",
    "ba_tui.features.mcp.setup",
    "ba_tui.plotting",
    "ba_tui.context.compression.strategies",
    "ba_tui.permissions.shell.simple_commands",
    "ba_tui.permissions.shell.judgement",
    "ba_tui.permissions.shell.walker",
    "ba_tui.processes.children",
    "ba_tui.processes.worker",
    "ba_tui.sessions.checkpoints.restore",
    "ba_tui.agent_files.agent_file",
    "tomllib",
    "ba_tui.sessions.fulltext",
    "ba_tui.tools.builtin.files",
    "ba_tui.tools.builtin.shell",
    "ba_tui.tools.builtin.skill_scripts",
    "ba_tui.tools.guards.pipeline",
    "ba_tui.tools.command_runner",
    "ba_tui.tools.builtin.arithmetic",
    "ba_tui.tools.editing.patches",
    "ba_tui.tools.editing.matching",
    "ba_tui.tools.editing.notebooks",
    "ba_tui.tools.editing.patch_formats",
    "ba_tui.tools.workers",
    "purgatory",
    "pypdf",
    "pydantic_settings",
    "sqlite3",
    "tree_sitter",
}
"""What comes in when it is first needed, and an answer without tools needs none of it."""
OWN_MODULES, OWN_LINES = 231, 47_100
"""The most that a process may load before its first request, which may only become less."""
BEFORE_REQUEST = """
import sys
def connecting(event, args):
    if event == "socket.connect" and not told:
        told.append(sys.stderr.write("\\nLOADED " + " ".join(sorted(sys.modules)) + "\\n"))
told = []
sys.addaudithook(connecting)
sys.argv = ["ba", *sys.argv[1:]]
from ba_tui.__main__ import main
sys.exit(main())
"""
RUN = """
import sys
sys.argv = ["ba", *sys.argv[1:]]
from ba_tui.__main__ import main
code = main()
sys.stderr.write("\\nLOADED " + " ".join(sorted(sys.modules)))
sys.exit(code)
"""


def loaded_by(tmp_path: Path, *argv: str, code: str = RUN, **env: str) -> set[str]:
    """The modules that ``ba ARGV`` has loaded when it ends, and the packages that they are in."""
    whole = {**os.environ, "BA_HOME": str(tmp_path / "home"), **env}
    command = [sys.executable, "-c", code, *argv]
    done = subprocess.run(
        command, cwd=tmp_path, env=whole, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = done.stderr.partition("\nLOADED ")[2].partition("\n")[0].split()
    return {*names, *(name.partition(".")[0] for name in names)}


def test_each_name_that_is_imported_when_it_is_called_exists() -> None:
    written = regex(r'\blate\(\s*"([\w.]+:\w+)"')
    files = sorted((CHECKOUT / "ba_tui").rglob("*.py"))
    names = {name for file in files for name in written.findall(file.read_text("utf-8"))}
    assert len(names) > 10
    for name in sorted(names):
        assert callable(resolve_name(name)), name


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


def test_the_first_request_waits_for_little_code(tmp_path: Path) -> None:
    with ModelServer([Step(say="Hello.")]) as server:
        loaded = loaded_by(
            tmp_path,
            *("-p", "hello"),
            code=BEFORE_REQUEST,
            HOME=str(tmp_path),
            BA_MODEL="anthropic/test",
            ANTHROPIC_API_KEY="test",
            ANTHROPIC_BASE_URL=server.url,
        )
    places = [CHECKOUT / name.replace(".", "/") for name in loaded if name.partition(".")[0] == "ba_tui"]
    files = [place / "__init__.py" if place.is_dir() else place.with_suffix(".py") for place in places]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
    assert "ba_tui.core.agent" in loaded
    assert (len(files) <= OWN_MODULES, lines <= OWN_LINES) == (True, True), f"{len(files)} modules, {lines} lines"


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


def test_helper_processes_load_neither_other_features_nor_settings() -> None:
    programs = (
        "data.analysis.engine_process.main",
        "data.analysis.forecast_process",
        "data.analysis.kernel.kernel_process",
        "data.analysis.source_process.main",
        "memory.engine.store_process.main",
    )
    code = f"import sys; {'; '.join(f'import ba_tui.features.{name}' for name in programs)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert f"ba_tui.features.{programs[-1]}" in loaded
    assert loaded & {"ba_tui.feature", "ba_tui.settings", "ba_tui.permissions", "ba_tui.features.plans"} == set()
