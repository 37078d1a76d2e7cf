"""Where the Python kernels of a session run: with which interpreter, in which sandbox, or why they can't."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.profiles import READING
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.permissions.sandbox.confinement import NotConfined, Sandbox
from ba_tui.permissions.sandbox.from_settings import limits_for
from ba_tui.permissions.session import SessionPermissions
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.limits import GIGABYTE
from ba_tui.processes.scratch import make_scratch, remove_scratch, scratch_path
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.settings import Settings
from ba_tui.tools.builtin.python import VENVS
from ba_tui.tools.session_scope import PYTHON_FILES

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.kernel.client import KernelPlace

FOLDER = PYTHON_FILES
MOST_MEMORY = 4 * GIGABYTE
EXTRA = "pip install 'ba-tui[python]'"
CACHE = "PYTHONPYCACHEPREFIX"
NEEDED = ("ipykernel", "jupyter_client")
SEARCH_SECONDS = 2.0
"""Seconds that the start of a kernel waits for the search for secrets."""
CHANGED = "Files with secrets changed, so Python began anew to keep them hidden."


class PythonPlace:
    """For one session, whose ``folder`` keeps the files that Python code writes; None: a temporary one. ``environment``
    is what commands see. Blocks, but for ``files``."""

    def __init__(
        self,
        permissions: SessionPermissions,
        folder: Path | None,
        settings: Settings,
        environment: Mapping[str, str],
    ) -> None:
        self._root = permissions.workspace.root
        self._policy = permissions.policy
        self.settings = settings
        self._sandbox = permissions.sandbox
        self._environment = environment
        self._temporary = folder is None
        base = folder or scratch_path("python")
        self.files = base / FOLDER
        """The folder of the files that Python code writes."""

    def lacking(self) -> str:
        """Why no kernel may run here, in words that follow "because"; empty when one may."""
        rule = next((line.rule for line in self._policy.rules() if _about_files(line)), "")
        if rule:
            return f"the sandbox can't hide the files of the rule {rule} from it"
        return missing() or self._sandbox.unheld()

    def made(self, engine: Analysis) -> KernelPlace:
        """Where the next kernel runs, which reads tables that ``engine`` writes."""
        from ba_tui.features.data.analysis.kernel.client import KernelPlace  # noqa: PLC0415 - not before the first kernel
        from ba_tui.features.data.analysis.kernel.tables import KernelBounds, exports_of  # noqa: PLC0415 - likewise

        exports = exports_of(engine)
        if self._temporary:
            make_scratch(self.files.parent)
        for folder in (self.files, exports):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        memory = python_memory(self.settings)
        held = _Held(self._sandbox, self.files, exports)
        limits = replace(limits_for(self.settings), memory=memory).for_seconds()
        worker = WorkerSettings(self._root, self._environment, limits, held.confine)
        return KernelPlace(KernelBounds(self.files, memory), worker, interpreter(self._root), held.outdated)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._temporary:
            remove_scratch(self.files.parent)


def missing() -> str:
    """What is not installed, in words; empty when all is."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed" if lacking else ""


def _about_files(line: RuleLine) -> bool:
    """Whether a rule keeps some files from being read. Those with secrets are hidden by the sandbox."""
    tool, _, pattern = line.rule.partition("(")
    strict = line.verdict in {"deny", "ask"} and pattern and not pattern.startswith("@")
    return bool(strict) and (tool == "@read" or fnmatchcase("read_file", tool))


class _Held:
    """The sandbox of one kernel, which lives longer than a command: what it hides may change meanwhile."""

    def __init__(self, sandbox: Sandbox, files: Path, exports: Path) -> None:
        self._sandbox = sandbox
        self._profile = replace(READING, readable=(exports,), writable=(files,))
        self._hidden: frozenset[tuple[Path, int]] = frozenset()

    def confine(self) -> Confinement:
        """Raises NotConfined."""
        if why := self._sandbox.unheld():
            raise NotConfined(f"Python can't be kept from changing files here: {why}.", "Run it with the tool shell.")
        # A kernel lives on: what is found after its start is masked in its results only.
        self._sandbox.search(SEARCH_SECONDS)
        held = self._sandbox.confine(self._profile)
        if held is None or held.findings is None:
            raise NotConfined("Python can't be kept from changing files here: there is no sandbox.")
        self._hidden = held.findings.concealed()
        # With a cache of its own, Python would compile every package again.
        return replace(held, environment={name: value for name, value in held.environment.items() if name != CACHE})

    def outdated(self) -> str:
        return "" if self._sandbox.scan.look().concealed() <= self._hidden else CHANGED


def interpreter(root: Path) -> Path:
    """The project's own Python where that has ipykernel, else the one that runs ba."""
    for venv in VENVS:
        python = root / venv / "bin" / "python"
        if os.access(python, os.X_OK) and any((root / venv).glob("lib/python3*/site-packages/ipykernel")):
            return python
    return Path(sys.executable)


def python_memory(settings: Settings) -> int:
    """Bytes that a kernel may use."""
    given = int(settings.analysis.python_memory_gb * GIGABYTE)
    return given or min(MOST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
