"""Where files of agents lie, and all the agents that they describe. What a file means stands in ``agent_file``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ba_tui.agent_files.means import MAX_NAME, AgentMeans
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.agents import AgentLine
from ba_tui.core.text.ranking import matching
from ba_tui.core.text.wording import one_word
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress, Owner, shown
from ba_tui.resources import Places, bundled, user_home

if TYPE_CHECKING:
    from ba_tui.agent_files.agent_file import AgentFile
    from ba_tui.agent_files.reading import AgentText

AgentFormat: TypeAlias = Literal[".md", ".toml"]
LARGEST = 200_000
"""Bytes of a file; a longer one is no prompt."""
MOST = 1_000
"""Files of one folder that are looked at."""
DEEPEST = 6
PROJECT = (".opencode/agent", ".opencode/agents", ".claude/agents", ".ba/agents")
PLUGINS = "plugins/*/agents"
BESIDE = "agents"
FOREIGN = frozenset({".claude", ".opencode", "opencode"})
"""Folders of other assistants."""
CODEX = ".codex/agents"
DOCUMENTS = frozenset({"readme.md", "claude.md", "agents.md", "changelog.md", "contributing.md", "license.md"})
"""What lies beside agents in collections and describes none, unless it has front matter."""


@frozen
class AgentFolder:
    """A folder that files of agents lie in, also deeper; one of a ``plugin`` has none below. ``open``: whether it may
    be looked into now."""

    path: Path
    source: Owner
    format: AgentFormat = ".md"
    plugin: str = ""
    open: Callable[[], bool] = lambda: True


def agent_folders(
    bundled: Path, home: Path | None, config: Path, root: Path, trusted: Callable[[], bool]
) -> Callable[[], Sequence[AgentFolder]]:
    """Where agents come from, a later folder wins: what ships with ba, the person's, the project's if trusted. It looks
    for plugins each time it is called."""
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
    """core.ports.agents.Agents, and what delegation needs: every agent of some folders, as far as ``ingress`` lets
    their files be read. A file is read again only when it has changed. Any thread."""

    def __init__(
        self, folders: Callable[[], Sequence[AgentFolder]], ingress: Ingress, means: AgentMeans, given: str = ""
    ) -> None:
        """``given``: agents of the flag --agents, which count before those of files."""
        self._folders = folders
        self._given = given
        self._ingress = ingress
        self._means = means
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, ...], AgentText]] = {}

    def look(self) -> Sequence[AgentFile]:
        """Every agent by name; of those of one name the one that counts comes first. Blocks."""
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
        """The folders called ``name`` beside ba's own folders of agents, and what lets their files be read."""
        ours = [each for each in self._folders() if each.path.name == BESIDE and not each.plugin]
        ours = [each for each in ours if each.path.parent.name not in FOREIGN]
        return [replace(folder, path=folder.path.with_name(name)) for folder in ours], self._ingress

    def missing(self, model: str) -> str:
        """Why a file may not name ``model``, or why the model can't be asked; empty when it can."""
        return self._means.missing(model)

    def own(self) -> bool:
        """Whether there are files of the person's or the project's. Looks at folders, reads no file."""
        folders = (folder for folder in self._folders() if folder.source != "bundled")
        found = (folder.path.is_dir() and folder.open() and any(files_below(folder)) for folder in folders)
        return bool(self._given) or any(found)

    def find(self, name: str) -> AgentFile | None:
        """The agent that counts, also a broken one; the name of a plugin may be left out where one agent is meant."""
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
        """What a file of the person's describes, or those of a folder, wherever it lies. Reads files."""
        formats: Sequence[AgentFormat] = (".md", ".toml")
        folders = [AgentFolder(path, "user", format) for format in formats]
        if not path.is_dir():
            found = [(path, folders[0])]
        else:
            found = [(file, folder) for folder in folders for file in files_below(folder)]
        agents = (self._agent(file, folder) for file, folder in found)
        return [agent.line for agent in agents if agent]

    def _of_flag(self) -> Sequence[AgentFile]:
        """Raises UsageError when the flag is no JSON of agents."""
        if not self._given:
            return ()
        from ba_tui.agent_files.agent_file import agent_of  # noqa: PLC0415 - see _agent
        from ba_tui.agent_files.reading import given_agents  # noqa: PLC0415

        return [agent_of(text, Path("--agents"), "user", self._means) for _, text in given_agents(self._given)]

    def _agent(self, path: Path, folder: AgentFolder) -> AgentFile | None:
        from ba_tui.agent_files.agent_file import agent_of  # noqa: PLC0415 - not before somebody looks

        text = self._text(path, folder)
        if path.name.casefold() in DOCUMENTS and not text.spelled:
            return None
        return agent_of(text, path, folder.source, self._means, folder.plugin)

    def _text(self, path: Path, folder: AgentFolder) -> AgentText:
        from ba_tui.agent_files.reading import AgentText  # noqa: PLC0415 - see _agent

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
    where: Places, ingress: Ingress, trusts: Callable[[Path], bool], means: AgentMeans, given: str
) -> AgentFiles:
    """All agents there are for the project that ``ingress`` reads."""
    root = ingress.root
    shipped = bundled("config") / "agents"
    folders = agent_folders(shipped, user_home(), where.config, root, lambda: trusts(root))
    return AgentFiles(folders, ingress, means, given)


def read_agent(path: Path, source: Owner, ingress: Ingress) -> AgentText:
    """What the file at ``path`` says; what is wrong with it is its trouble. Raises OSError."""
    from ba_tui.agent_files.reading import AgentText, read_markdown, read_toml  # noqa: PLC0415 - see AgentFiles._agent

    try:
        text = ingress.text(path, LARGEST + 1, source)
    except FileRefused as error:
        return AgentText(trouble=f"it was not read: {error.strerror}")
    if path.stat().st_size > LARGEST:
        return AgentText(trouble=f"it is larger than {LARGEST // 1_000} KB")
    return read_toml(text) if path.suffix.casefold() == ".toml" else read_markdown(text)


def files_below(folder: AgentFolder) -> Iterator[Path]:
    """The files of a folder that may describe agents, in order; a link to a folder above is not followed again."""
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
            # Of plugins only what trust covers: its pattern knows small letters alone.
            ending = name if folder.plugin else name.casefold()
            if ending.endswith(folder.format) and not name.startswith("."):
                count += 1
                if count > MOST:
                    return
                yield Path(here, name)


def _ranked(same: Sequence[AgentFile]) -> list[AgentFile]:
    """Agents of one name, the one that counts first: the latest that works, else the latest."""
    latest = list(reversed(same))
    working = next((agent for agent in latest if not agent.trouble), latest[0])
    others = [agent for agent in latest if agent is not working]
    return [working, *(_shadowed(agent, working) for agent in others)]


def _shadowed(agent: AgentFile, by: AgentFile) -> AgentFile:
    warning = f"{shown(by.path)} describes an agent of the same name, which counts"
    return replace(agent, shadowed=True, warnings=(*agent.warnings, warning))
