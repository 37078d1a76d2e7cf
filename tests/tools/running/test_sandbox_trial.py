"""What the doctor tries of the sandbox: a real one holds, and one that holds nothing is found out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from ba_tui.permissions.sandbox.confinement import FoundSandbox, Sandbox, find
from ba_tui.permissions.sandbox.layout import Mechanism, MountPart, bubblewraps, landlocks
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.tools.checks import TOLD, Trial, try_out

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")


@dataclass(frozen=True)
class Sieve:
    """A mechanism that confines nothing."""

    name: str = "sieve"
    guards: str = "nothing"
    separate: bool = False
    walled: bool = False
    hides: bool = True

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        return ()

    def environment(self, temporary: Path) -> dict[str, str]:
        return {"TMPDIR": str(temporary)}


def tried(ways: Iterator[Mechanism], tmp_path: Path) -> dict[str, Trial]:
    found = find(ways)
    if found.mechanism is None:
        pytest.skip("; ".join(found.troubles) or "nothing of the kind is here")
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "config.yaml").touch()
    sandbox = Sandbox(FileReach((tmp_path,), hidden=(settings,)), look=lambda: FoundSandbox(found.mechanism))
    return {trial.profile: trial for trial in try_out(sandbox)}


def test_bubblewrap_holds_what_is_promised(tmp_path: Path) -> None:
    trials = tried(iter(bubblewraps()), tmp_path)
    assert trials == {"reading": Trial("reading"), "working": Trial("working")}


def test_landlock_holds_less_and_that_is_told(tmp_path: Path) -> None:
    trials = tried(iter(landlocks()), tmp_path)
    assert list(trials) == ["working"]
    broken = trials["working"].broken
    assert {TOLD["git"], TOLD["tools"], TOLD["secret"]} <= set(broken)
    # Capabilities are dropped, modes and numbers of processes limited, without name spaces too.
    assert not {TOLD["setid"], TOLD["processes"], TOLD["settings"], TOLD["network"]} & set(broken)


def test_what_holds_nothing_is_found_out(tmp_path: Path) -> None:
    broken = set(tried(iter([cast("Mechanism", Sieve())]), tmp_path)["reading"].broken)
    assert {TOLD[name] for name in ("write", "git", "tools", "secret", "network", "settings")} <= broken
    if os.geteuid() == 0:
        assert TOLD["root"] in broken
