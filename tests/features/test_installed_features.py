"""Features of installed packages: loaded when the user's settings name them, and harmless when they are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.feature import installed_features
from tests.program import Program

EXAMPLE = Path(__file__).parent / "weather"
SCRIPT = """steps:
  - {say: I look., calls: [{tool: weather, args: {city: Lisbon}}]}
  - {say: "It is sunny."}
"""
BROKEN = """from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

BROKEN = Feature(
    "broken",
    open="broken_feature:open_it",
    checks="broken_feature:open_it",
    app=AppParts(commands=(Command("doctor", cli="x:y"), Command("gone", cli="x:y")), panes=("x:y",), openers=("x:y",)),
)
OTHER = Feature("another", open="broken_feature:open_it")


def open_it(context):
    raise RuntimeError("no weather today")
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, installed by pip as a user would, and a package whose feature fails."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(folder), str(EXAMPLE)],
        check=True,
        capture_output=True,
        timeout=60,
    )
    (folder / "broken_feature.py").write_text(BROKEN)
    (folder / "broken_feature-1.dist-info").mkdir()
    (folder / "broken_feature-1.dist-info" / "METADATA").write_text("Name: broken-feature\nVersion: 1\n")
    (folder / "broken_feature-1.dist-info" / "entry_points.txt").write_text(
        "[ba.features]\nbroken = broken_feature:BROKEN\nmisnamed = broken_feature:OTHER\nabsent = no_such_module:X\n"
    )
    return folder


@pytest.fixture
def ba(tmp_path: Path, site: Path) -> Program:
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / "ba").mkdir(parents=True)
    (tmp_path / "work" / "talk.yaml").write_text(SCRIPT)
    return Program(tmp_path / "work", tmp_path / "home", {"PYTHONPATH": str(site)})


def name(ba: Program, *features: str) -> None:
    (ba.home / "ba" / "config.yaml").write_text(f"features: [{', '.join(features)}]\n")


def test_a_named_feature_brings_its_command_and_its_tool(ba: Program) -> None:
    name(ba, "weather")
    done = ba.run("weather", "Porto")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Porto: 21 °C, sunny\n", "")
    assert "Print the weather of a city." in ba.run("--help").stdout
    asked = ba.run("-p", "--output-format", "stream-json", "-m", "scripted:talk.yaml", "How is Lisbon?")
    assert asked.returncode == 0, asked.stderr
    results = [json.loads(line) for line in asked.stdout.splitlines()]
    assert any("Lisbon: 21 °C, sunny" in json.dumps(each, ensure_ascii=False) for each in results)


def test_an_installed_feature_that_nobody_named_is_not_loaded(ba: Program) -> None:
    assert "weather" not in ba.run("--help").stdout
    listed = ba.run("tools", "list")
    assert listed.returncode == 0
    assert "weather" not in listed.stdout


def test_a_project_names_no_feature(ba: Program) -> None:
    (ba.folder / ".ba").mkdir()
    (ba.folder / ".ba" / "config.yaml").write_text("features: [weather]\n")
    assert "weather" not in ba.run("--help").stdout


@pytest.mark.parametrize(
    ("feature", "why"),
    [
        ("nothing", "no installed package has a feature 'nothing'"),
        ("absent", "absent can't be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("misnamed", "broken_feature:OTHER is not a ba_tui.feature.Feature named 'misnamed'"),
        ("memory", "memory is built in"),
    ],
)
def test_a_feature_that_cannot_be_loaded_is_named_and_ba_works(ba: Program, feature: str, why: str) -> None:
    name(ba, feature)
    (ba.folder / "hello.yaml").write_text("steps: [{say: Hello.}]\n")
    done = ba.run("-p", "-m", "scripted:hello.yaml", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert f"features: {why}" in done.stderr.replace("\n", " ")
    assert why in ba.run("doctor").stdout.replace("\n", " ")


def test_a_feature_that_fails_to_open_costs_no_session_and_takes_no_command(ba: Program) -> None:
    name(ba, "broken")
    (ba.folder / "hello.yaml").write_text("steps: [{say: Hello.}]\n")
    done = ba.run("-p", "-m", "scripted:hello.yaml", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "The feature broken can't be opened: RuntimeError: no weather today" in done.stderr.replace("\n", " ")
    assert ba.run("doctor", "--help").returncode == 0


def test_a_broken_command_or_check_is_named_in_one_line(ba: Program) -> None:
    name(ba, "broken")
    shown = ba.run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "gone" not in shown.stdout
    called = ba.run("gone")
    assert (called.returncode, called.stdout) == (1, "")
    assert called.stderr.startswith("ba: ba gone can't be loaded: No module named 'x'.")
    examined = ba.run("doctor").stdout.replace("\n", " ")
    assert "The checks of the feature failed: RuntimeError: no weather today" in " ".join(examined.split())


def test_a_package_gets_no_pane_and_no_opener_in_the_app(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("BA_FEATURES", "broken")
    (feature,) = installed_features().features
    assert [row.name for row in feature.app.commands] == ["doctor", "gone"]
    assert (feature.app.panes, feature.app.openers, feature.app.opened, feature.app.views) == ((), (), (), {})
    assert not feature.shell.translate


def test_a_start_without_the_setting_looks_for_no_package(ba: Program) -> None:
    code = (
        "import sys; from ba_tui.feature import known_features; known_features(); "
        "sys.exit('importlib.metadata' in sys.modules or 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **ba.environment}, check=False, timeout=60)
    assert done.returncode == 0
