"""The wheel: built, installed aside and run in an empty folder outside the checkout, it finds all that ships with it.

What the settings, themes and prompts say is tested where they are read.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SHIPPED = ("config", "skills", "themes")


@dataclass(frozen=True)
class Installed:
    """An installed ba: where its packages lie, and an empty folder to start it in."""

    site: Path
    empty: Path

    def run(self, *command: str | Path) -> str:
        env = {**os.environ, "PYTHONPATH": str(self.site), "BA_HOME": str(self.empty.parent / "home")}
        done = subprocess.run(command, cwd=self.empty, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("wheel")
    site, empty = place / "site", place / "empty"
    empty.mkdir()
    python = Path(sys.executable)
    build = [python, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, CHECKOUT]
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site]
    for command, where in ((build, CHECKOUT), (install, place)):
        found = sorted(place.glob("*.whl"))
        done = subprocess.run([*command, *found], cwd=where, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return Installed(site, empty)


def shipped_files(root: Path) -> dict[str, bytes]:
    found = (path for name in SHIPPED for path in (root / name).rglob("*"))
    # Installing compiles the scripts of skills.
    files = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_the_wheel_carries_what_ships_with_ba(installed: Installed) -> None:
    asked = "import ba_tui.resources as r; print(*(r.bundled(n) for n in ('config', 'skills', 'themes')), sep='\\n')"
    found = [Path(line) for line in installed.run(sys.executable, "-c", asked).splitlines()]
    assert [path.name for path in found] == list(SHIPPED)
    assert all(path.is_dir() and path.is_relative_to(installed.site) for path in found)
    assert shipped_files(found[0].parent) == shipped_files(CHECKOUT)


def test_an_installed_ba_starts_in_an_empty_folder(installed: Installed) -> None:
    assert installed.run(installed.site / "bin" / "ba", "--version").startswith("ba ")
    shown = installed.run(installed.site / "bin" / "ba", "config", "show")
    assert "theme" in shown
    assert str(CHECKOUT) not in shown
    assert list(installed.empty.iterdir()) == []
