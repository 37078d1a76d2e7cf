"""The real ``ba`` as a process of its own, with a home and a folder of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from ba_tui.cli.main import run


@dataclass(frozen=True)
class Program:
    """``ba`` in ``folder``; ``env`` is all it knows of the outside beside a search path."""

    folder: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def environment(self) -> dict[str, str]:
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        return {**plain, "BA_HOME": str(self.home / "ba"), "PYTHONWARNINGS": "error", **self.env}

    def start(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ba_tui", *args]
        pipe = subprocess.PIPE
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **options}
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, **pipes)

    def run(
        self, *args: str, stdin: str | None = None, stdout: IO[str] | int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ba_tui", *args]
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            **given,
        )

    def here(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The same without a process, many times faster: for results that depend on the words and the input alone.

        The input waits in a pipe, which holds 64 kB.
        """
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        reader, writer = os.pipe()
        os.write(writer, stdin.encode())
        os.close(writer)
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(out),
            redirect_stderr(err),
            open(reader) as piped,
        ):
            patch.setattr(sys, "stdin", piped)
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            code = run(args)
        printed = (stream.buffer.getvalue().decode() for stream in (out, err))
        return subprocess.CompletedProcess(args, code, *printed)

    def json(self, *args: str) -> Any:
        return json.loads(self.here(*args).stdout)

    def journals(self) -> Sequence[Path]:
        return sorted((self.home / "ba" / "sessions").glob("*/*/events.jsonl"))

    def events(self) -> list[dict[str, Any]]:
        (path,) = self.journals()
        return [json.loads(line) for line in path.read_text().splitlines()]
