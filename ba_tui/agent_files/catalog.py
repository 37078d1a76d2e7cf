"""Finds the files of agents in all folders, and the main agent of a session. ``agent_file`` reads the files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ba_tui.agent_files.means import MAX_NAME, AgentMeans
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN
from ba_tui.core.ports.agents import AgentLine
from ba_tui.core.teamwork import AgentSpec
from ba_tui.core.text.wording import clipped, matching, one_word, suggestion
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress, Owner, shown
from ba_tui.resources import UserFolders, bundled, user_home
from ba_tui.settings import Settings

if TYPE_CHECKING:
    from ba_tui.agent_files.agent_file import AgentFile, AgentText


AgentFormat: TypeAlias = Literal[".md", ".toml"]
LARGEST = 200_000
"""Bytes of the largest file."""
MOST = 1_000
"""Most files of a folder."""
DEEPEST = 6
PROJECT = (".opencode/agent", ".opencode/agents", ".claude/agents", ".ba/agents")
PLUGINS = "plugins/*/agents"
BESIDE = "agents"
FOREIGN = frozenset({".claude", ".opencode", "opencode"})
"""Folders of other assistants."""
CODEX = ".codex/agents"
DOCUMENTS = frozenset({"readme.md", "claude.md", "agents.md", "changelog.md", "contributing.md", "license.md"})
"""Files in collections of agents that describe no agent, unless they have front matter."""


@frozen
class AgentFolder:
    """A folder with files of agents, also in its subfolders, except for a ``plugin``. ``open``: whether it may be read
    now."""

    path: Path
    source: Owner
    format: AgentFormat = ".md"
    plugin: str = ""
    open: Callable[[], bool] = lambda: True


def agent_folders(
    bundled: Path, home: Path | None, config: Path, root: Path, trusted: Callable[[], bool]
) -> Callable[[], Sequence[AgentFolder]]:
    """Return a function that lists the folders of agents: bundled, the user's, the project's if trusted. A later folder
    takes precedence. Each call looks for plugins again."""
    own = [AgentFolder(home / CODEX, "user", ".toml")] if home else []
    own += [AgentFolder(home / ".config" / "opencode" / name, "user") for name in ("agent", "agents")] if home else []
    own += [AgentFolder(home / ".claude" / "agents", "user")] if home else []
    first = [AgentFolder(bundled, "bundled"), *own, AgentFolder(config / "agents", "user")]
    last = [AgentFolder(root / CODEX, "project", ".toml", open=trusted)]
    last += [AgentFolder(root / name, "project", open=trusted) for name in PROJECT]

    def now() -> Sequence[AgentFolder]:
        found = sorted(root.glob(PLUGINS))[:MOST]
        plugins = [
            AgentFolder(path, "project", plugin=one_word(path.parent.name, MAX_NAME), open=trusted) for path in found
        ]
        return [*first, *plugins, *last]

    return now


class AgentFiles:
    """core.ports.agents.Agents: the agents of some folders whose files ``ingress`` allows to read. A file is read again
    only when it has changed. Thread-safe."""

    def __init__(
        self, folders: Callable[[], Sequence[AgentFolder]], ingress: Ingress, means: AgentMeans, given: str = ""
    ) -> None:
        """``given``: the value of --agents, whose agents take precedence over those of files."""
        self._folders = folders
        self._given = given
        self._ingress = ingress
        self._means = means
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, ...], AgentText]] = {}

    def look(self) -> Sequence[AgentFile]:
        """Return all agents by name; of agents with the same name the effective one comes first. Blocks."""
        with self._lock:
            found: dict[str, list[AgentFile]] = {}
            seen: set[str] = set()
            for folder in self._folders():
                real = os.path.realpath(folder.path)
                if real in seen or not folder.path.is_dir() or not folder.open():
                    continue
                seen.add(real)
                for path in files_below(folder):
                    if agent := self._agent(path, folder):
                        found.setdefault(agent.spec.name, []).append(agent)
            for agent in self._of_flag():
                found.setdefault(agent.spec.name, []).append(agent)
            return [agent for name in sorted(found) for agent in _ranked(found[name])]

    def beside(self, name: str) -> tuple[Sequence[AgentFolder], Ingress]:
        """Return the folders called ``name`` next to ba's own folders of agents, and the ingress for their files."""
        ours = [each for each in self._folders() if each.path.name == BESIDE and not each.plugin]
        ours = [each for each in ours if each.path.parent.name not in FOREIGN]
        return [replace(folder, path=folder.path.with_name(name)) for folder in ours], self._ingress

    def missing(self, model: str) -> str:
        """Return why ``model`` can't be used; empty when it can."""
        return self._means.missing(model)

    def own(self) -> bool:
        """Return whether the user or the project has agents. Lists folders, reads no file."""
        folders = (folder for folder in self._folders() if folder.source != "bundled")
        found = (folder.path.is_dir() and folder.open() and any(files_below(folder)) for folder in folders)
        return bool(self._given) or any(found)

    def find(self, name: str) -> AgentFile | None:
        """Return the effective agent, even if broken. The plugin's name may be left out if the rest is unambiguous."""
        counting = [agent for agent in self.look() if not agent.shadowed]
        exact = next((agent for agent in counting if agent.spec.name == name), None)
        last = [agent for agent in counting if agent.spec.name.rpartition(":")[2] == name]
        return exact or (last[0] if len(last) == 1 else None)

    def lines(self) -> Sequence[AgentLine]:
        """See core.ports.agents.Agents."""
        return [agent.line for agent in self.look()]

    def search(self, words: str) -> Sequence[AgentLine]:
        """See core.ports.agents.Agents."""
        usable = [agent.line for agent in self.look() if agent.usable]
        return matching(words, usable, lambda line: (line.name, line.description))

    def prompt(self, path: str) -> str:
        """See core.ports.agents.Agents."""
        found = next((agent for agent in self.look() if str(agent.path) == path), None)
        if found is None or found.trouble:
            raise UsageError(found.trouble if found else f"{path} is gone.")
        return found.spec.prompt

    def described(self, path: Path) -> Sequence[AgentLine]:
        """Return the agents of one file or folder of the user, at any place. Reads files."""
        formats: Sequence[AgentFormat] = (".md", ".toml")
        folders = [AgentFolder(path, "user", format) for format in formats]
        if not path.is_dir():
            found = [(path, folders[0])]
        else:
            found = [(file, folder) for folder in folders for file in files_below(folder)]
        agents = (self._agent(file, folder) for file, folder in found)
        return [agent.line for agent in agents if agent]

    def _of_flag(self) -> Sequence[AgentFile]:
        """Return the agents of --agents. Raises UsageError for an invalid value."""
        if not self._given:
            return ()
        from ba_tui.agent_files import agent_file  # noqa: PLC0415 - see _agent

        texts = agent_file.given_agents(self._given)
        return [agent_file.agent_of(text, Path("--agents"), "user", self._means) for _, text in texts]

    def _agent(self, path: Path, folder: AgentFolder) -> AgentFile | None:
        from ba_tui.agent_files import agent_file  # noqa: PLC0415 - loaded when agents are first listed

        text = self._text(path, folder)
        if path.name.casefold() in DOCUMENTS and not text.spelled:
            return None
        return agent_file.agent_of(text, path, folder.source, self._means, folder.plugin)

    def _text(self, path: Path, folder: AgentFolder) -> AgentText:
        from ba_tui.agent_files.agent_file import AgentText  # noqa: PLC0415 - see _agent

        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_nlink)
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, read_agent(path, folder.source, self._ingress))
                self._read[path] = known
        except OSError as error:
            return AgentText(trouble=f"it can't be read: {error.strerror or error}")
        return known[1]


def project_agents(
    where: UserFolders, ingress: Ingress, trusts: Callable[[Path], bool], means: AgentMeans, given: str
) -> AgentFiles:
    """Return all agents for the project of ``ingress``."""
    root = ingress.root
    shipped = bundled("config") / "agents"
    folders = agent_folders(shipped, user_home(), where.config, root, lambda: trusts(root))
    return AgentFiles(folders, ingress, means, given)


def read_agent(path: Path, source: Owner, ingress: Ingress) -> AgentText:
    """Read the file at ``path``; problems are in its ``trouble``. Raises OSError."""
    from ba_tui.agent_files import agent_file  # noqa: PLC0415 - see AgentFiles._agent

    try:
        text = ingress.text(path, LARGEST + 1, source)
    except FileRefused as error:
        return agent_file.AgentText(trouble=f"it was not read: {error.strerror}")
    if path.stat().st_size > LARGEST:
        return agent_file.AgentText(trouble=f"it is larger than {LARGEST // 1_000} KB")
    return agent_file.read_toml(text) if path.suffix.casefold() == ".toml" else agent_file.read_markdown(text)


def files_below(folder: AgentFolder) -> Iterator[Path]:
    """Yield the files of a folder that may describe agents, in order. Links to a folder above are not followed."""
    top, seen, count = len(folder.path.parts), set[str](), 0
    for here, folders, names in os.walk(folder.path, followlinks=True):
        real = os.path.realpath(here)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        below = not folder.plugin and len(Path(here).parts) - top < DEEPEST
        folders[:] = sorted(name for name in folders if below and not name.startswith("."))
        for name in sorted(names):
            # Trust covers only files of plugins that match its pattern, which is in lower case.
            ending = name if folder.plugin else name.casefold()
            if ending.endswith(folder.format) and not name.startswith("."):
                count += 1
                if count > MOST:
                    return
                yield Path(here, name)


def _ranked(same: Sequence[AgentFile]) -> list[AgentFile]:
    """Sort agents of one name, the effective one first: the latest that works, else the latest."""
    latest = list(reversed(same))
    working = next((agent for agent in latest if not agent.trouble), latest[0])
    others = [agent for agent in latest if agent is not working]
    return [working, *(_shadowed(agent, working) for agent in others)]


def _shadowed(agent: AgentFile, by: AgentFile) -> AgentFile:
    warning = f"{shown(by.path)} describes an agent of the same name, which counts"
    return replace(agent, shadowed=True, warnings=(*agent.warnings, warning))


def main_spec(files: AgentFiles, settings: Settings, system: str, skills: str) -> AgentSpec:
    """Return the main agent: ba, or the agent of --agent. ``system``: ba's prompt; ``skills``: the list of skills.

    Raises:
        UsageError: the agent is unknown (the error suggests the nearest name) or broken.
    """
    name = settings.agents.main
    spec = AgentSpec(MAIN, prompt=system, max_loops=settings.max_loops)
    if name:
        # Its tools and limits apply as for a sub-agent.
        found = agent_called(files, name).spec
        # The user's effort takes precedence over that of the file, as the user's model does.
        effort = "" if settings.effort else found.effort
        spec = replace(found, name=MAIN, max_loops=settings.max_loops, effort=effort)
    return replace(spec, prompt="\n\n".join(part.strip() for part in (spec.prompt, skills) if part.strip()))


def agent_called(files: AgentFiles, name: str) -> AgentFile:
    """Return the agent ``name``. Raises UsageError with the nearest name, or the reason why it can't be used."""
    from ba_tui.settings.tool_names import agent_name  # noqa: PLC0415 - see AgentFiles

    found = files.find(name) or files.find(agent_name(name))
    if found is None:
        names = [agent.spec.name for agent in files.look() if agent.usable]
        raise UsageError(f"There is no agent {clipped(name, 60)!r}: {suggestion(name, names)}.", "See ba agents list.")
    if found.trouble:
        raise UsageError(f"The agent {found.spec.name} can't be used: {found.trouble}.", f"Correct {found.path}.")
    if found.off:
        raise UsageError(f"The agent {found.spec.name} is switched off in {found.path}.", "Choose another agent.")
    return found
