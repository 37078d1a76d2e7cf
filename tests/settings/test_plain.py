"""What is plainly right becomes settings without pydantic, and never something that pydantic would not have made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ba_tui.providers.token_counter import EncoderConfig
from ba_tui.settings import Settings, read_document
from ba_tui.settings.plain import NotPlain, adapter, build

CONFIG = Path(__file__).resolve().parents[2] / "config"
RIGHT: list[dict[str, Any]] = [
    {},
    {"model": "anthropic/claude-sonnet-4-5", "theme": "dark", "max_loops": 50, "max_cost": 2, "effort": None},
    {"providers": {"local": {"kind": "openai", "base_url": "http://127.0.0.1:8080/v1"}}},
    {"permissions": {"allow": ["shell(git status)", {"rule": "shell", "timeout": 300}], "deny": ["web_fetch"]}},
    {"sandbox": False, "add_dirs": ["/srv/data"], "commands": {"write": ["/srv/out"], "memory_gb": 1.5}},
    {"hooks": {"PreToolUse": [{"matcher": "shell", "hooks": [{"command": "true", "timeout": 5}]}]}},
    {"compression": {"strategy": "extract", "trigger": 0.7, "target": 0.4}},
]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 700), st.floats(), st.text(max_size=4), st.just([]), st.just(["a", 1])
)
GROUPS = st.dictionaries(
    st.sampled_from(["strategy", "trigger", "target", "keep_rounds", "model", "network", "url", "x"]),
    st.one_of(VALUES, st.sampled_from(["auto", "extract", 0.9])),
    max_size=3,
)
NAMES = ["model", "max_loops", "max_cost", "sandbox", "theme", "effort", "add_dirs", "compression", "web", "hooks", "y"]
DATA = st.dictionaries(st.sampled_from(NAMES), st.one_of(VALUES, GROUPS), max_size=4)


@pytest.mark.parametrize("data", RIGHT)
def test_what_people_write_needs_no_pydantic(data: dict[str, Any]) -> None:
    assert build(Settings, data) == adapter(Settings).validate_python(data)


@given(data=DATA)
def test_nothing_is_taken_that_pydantic_refuses_or_reads_otherwise(data: dict[str, Any]) -> None:
    try:
        built = build(Settings, data)
    except NotPlain:
        return
    try:
        assert built == adapter(Settings).validate_python(data)
    except ValidationError as error:
        pytest.fail(f"{data} was taken, but {error}")


def test_the_bundled_encoders_need_no_pydantic() -> None:
    document = read_document(CONFIG / "token_encoders.yaml")
    assert document
    for entry in (*document.data["families"].values(), *document.data["models"].values()):
        assert build(EncoderConfig, entry) == adapter(EncoderConfig).validate_python(entry)


def test_a_start_with_plain_settings_never_loads_pydantic(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "model: openai/gpt-5\nmax_loops: 7\nproviders:\n  x: {base_url: http://h/v1}\n"
    )
    code = (
        "import sys, pathlib, ba_tui.assembly as a; a.connect({}, pathlib.Path.cwd()); print('pydantic' in sys.modules)"
    )
    env = {"BA_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": "", "BA_THEME": "dark"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "False", run.stderr
