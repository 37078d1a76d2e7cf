"""Runs the scripts of bundled skills as a person's program would: a process, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ba_tui.resources import bundled

SKILLS = bundled("skills")


@dataclass(frozen=True)
class Bench:
    """A workspace in ``folder``; beside it lies what no script may touch."""

    folder: Path

    def write(self, name: str, text: str) -> str:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, "utf-8")
        return name

    def run(self, script: str, args: Mapping[str, Any] | str) -> dict[str, Any]:
        """What ``skill/script`` answers."""
        done = self._start(script, args)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)

    def refused(self, script: str, args: Mapping[str, Any] | str) -> str:
        """Why it did not do it, in one line."""
        done = self._start(script, args)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
        return done.stderr.removeprefix("error: ").rstrip("\n")

    def _start(self, script: str, args: Mapping[str, Any] | str) -> subprocess.CompletedProcess[str]:
        skill, name = script.split("/")
        path = SKILLS / skill / "scripts" / name
        env = {"PATH": os.environ["PATH"], "AGENT_WORKSPACE_PATH": str(self.folder), "PYTHONWARNINGS": "error"}
        text = args if isinstance(args, str) else json.dumps(args)
        # Scripts that ask for no packages get none.
        alone = () if (SKILLS / skill / "requirements.txt").exists() else ("-S",)
        command = [sys.executable, "-B", *alone, "-X", "utf8", path]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=env,
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
