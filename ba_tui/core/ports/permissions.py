"""Ports of permissions, hooks and folder trust, and permission rules in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.events import Mode
from ba_tui.core.results import Diff
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

RuleVerdict: TypeAlias = Literal["allow", "ask", "deny"]
RuleScope: TypeAlias = Literal["session", "project", "user"]
"""Lifetime of a rule from the user: until the session ends, in this project, or everywhere."""
RuleLayer: TypeAlias = Literal["", "bundled", "user", "claude", "project", "flag", "session"]
"""Origin of a rule; claude: a settings file of Claude Code, the user's or that of a trusted project."""


@frozen
class RuleLine:
    """A permission rule in a list: ``shell(git status)``, its verdict, its source and its number of hits. ``terms`` are
    its other fields (``when``, ``timeout``, ``on_timeout``) as JSON, empty for none. ``waiting``: an allow rule of the
    project that takes effect only after the user confirms it."""

    rule: str
    verdict: str
    source: str
    hits: int = 0
    layer: RuleLayer = ""
    terms: str = ""
    waiting: bool = False

    @property
    def leaves(self) -> bool:
        """Return whether it lets commands run outside the sandbox."""
        return self.verdict == "allow" and self.rule.startswith("outside(")


class Permissions(Protocol):
    """The mode and the rules of a conversation. Methods that read or write files may block on the disk."""

    @property
    def mode(self) -> Mode: ...

    def set_mode(self, mode: Mode) -> None:
        """Set the mode. Raises UsageError for a mode not in ``modes``."""
        ...

    def modes(self) -> Sequence[Mode]:
        """Return the available modes, in the order in which the key cycles through them."""
        ...

    def rules(self) -> Sequence[RuleLine]:
        """Return all rules, the strongest first. May read files: call it off the event loop."""
        ...

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        """Add a rule, or confirm a waiting one with the same text. Writes a file: call it off the event loop.

        Raises:
            UsageError: the text is not a rule, or the rule cannot be saved. StorageError: writing failed.
        """
        ...

    def remove(self, rule: RuleLine) -> None:
        """Remove a rule. Writes a file: call it off the event loop.

        Raises:
            UsageError: it is not the user's (bundled, a flag, the project's). StorageError: as ``add``.
        """
        ...


@frozen
class HookRun:
    """The last run of a hook: its end in seconds since the epoch, its duration, and its outcome in a few words.
    ``count``: its runs in this session."""

    at: float
    seconds: float
    outcome: str
    failed: bool = False
    count: int = 1


@frozen
class HookListing:
    """A hook in a list. ``matcher``: the tools that it applies to, empty for all; ``source``: file and line. ``owner``:
    whose settings define it. ``last``: its last run in this session. ``off``: why it does not run."""

    event: str
    text: str
    matcher: str = ""
    source: str = ""
    owner: Literal["user", "project"] = "user"
    seconds: float = 0.0
    kind: Literal["command", "prompt"] = "command"
    last: HookRun | None = None
    off: str = ""


class HookList(Protocol):
    """The hooks of a conversation."""

    def lines(self) -> Sequence[HookListing]:
        """Return the hooks by event, in the order in which they run. Reads files: call it off the event loop."""
        ...

    def problems(self) -> Sequence[str]:
        """Return a sentence for each hook or hook file that is ignored, with the reason."""
        ...


ASKS_AGAIN = "/trust asks about each again."
"""The remedy in notices about project settings that the user has not allowed."""


@frozen
class TrustedItems:
    """Items of one ``kind`` (tools, hooks, MCP servers …) that trusting a folder enables."""

    kind: str
    names: tuple[str, ...]


@frozen
class AskedSetting:
    """A value in a project's settings that the user must allow in addition to trust: the dotted ``setting``, its
    ``value``, its purpose ``wants`` ("to work in /data too"), and the file that sets it."""

    setting: str
    value: str
    wants: str
    source: str
    allowed: bool = False

    @property
    def question(self) -> str:
        """Return the question whether the project may have the value."""
        return f"This project asks {self.wants}. Allow?"


@frozen
class ToolWrite:
    """A file written by a tool and not yet accepted by the user: the writer, and the time if known. ``runs``: it runs
    code or controls what runs; otherwise it instructs models. ``digest`` is of the current content."""

    path: Path
    name: str
    by: str
    at: str = ""
    runs: bool = True
    digest: str = ""

    @property
    def line(self) -> str:
        """Return the file and its writer, for people."""
        return f"{self.name}: written by {self.by}{f', {self.at}' if self.at else ''}"


@frozen
class TrustState:
    """Trust in a folder when it was read. ``unknown``: the user was not asked yet; ``changed``: it was trusted, and its
    code changed since. ``written``: files that tools wrote and the user has not accepted; those that instruct models
    are not read, even in a trusted folder.

    ``links`` come with their targets. ``files``: what trust would cover, in full or since it was given. ``trouble``:
    why the folder cannot be trusted. ``refused``: lines of its settings that trust would not enable, each with file and
    line; in a trusted folder they are warnings of its settings.
    """

    root: Path
    state: Literal["trusted", "unknown", "changed"]
    fingerprint: str = ""
    holds: tuple[TrustedItems, ...] = ()
    files: tuple[Diff, ...] = ()
    gone: tuple[str, ...] = ()
    warning: str = ""
    trouble: str = ""
    links: tuple[str, ...] = ()
    written: tuple[ToolWrite, ...] = ()
    refused: tuple[str, ...] = ()


class FolderTrust(Protocol):
    """Which folders the user trusts. All methods read or write files: call them off the event loop."""

    def look(self, root: Path) -> TrustState:
        """Return the state of a folder. Never raises: problems are in ``trouble``."""
        ...

    def grant(self, seen: TrustState) -> None:
        """Trust the folder as shown to the user, with files that tools wrote. Raises UsageError if it cannot be
        trusted, StorageError."""
        ...

    def revoke(self, root: Path) -> bool:
        """Withdraw trust. Returns False if the folder was not trusted. Raises StorageError."""
        ...

    def asked(self, root: Path) -> Sequence[AskedSetting]:
        """Return the values that the project's settings ask for, allowed or not. Never raises."""
        ...

    def allow(self, root: Path, asked: AskedSetting) -> None:
        """Allow the project this value. Raises StorageError."""
        ...


EDITS = ("edit_file(**)", "write_file(**)", "apply_patch(**)")
"""Together these rules cover every file edit in the workspace folder."""
SANDBOXED = "@sandbox"
"""The pattern of a rule about code in a sandbox without network."""
_RULE = regex(r"(?P<tool>[\w.*@-]+)(?:\((?P<pattern>.*)\))?")
_ESCAPED = regex(r"\[([*?\[])\]")
_COMMANDS = {"shell": "", "outside": ", outside the sandbox"}
_EDITORS = frozenset({"edit_file", "write_file", "apply_patch"})
_SQL = {
    "read": "that only read data",
    "write": "that change data",
    "ddl": "that change tables",
    "unknown": "of any kind",
}
_CLASSES = {
    "@secret": "files with secrets",
    "@guarded": "protected files",
    "@outside": "files outside the workspace",
    "*": "every tool",
    "@read": "every tool that reads",
    "@write": "every tool that writes",
    "@execute": "every tool that runs code",
    "@network": "every tool that uses the network",
}


def joined_rules(rules: Iterable[str]) -> str:
    """Return several rules as one text, one a line; rules contain no line ends."""
    return "\n".join(rules)


def split_rules(text: str) -> tuple[str, ...]:
    """Return the rules of a text that ``joined_rules`` made."""
    return tuple(text.split("\n"))


def rule_words(text: str) -> str:
    """Return what the rules in ``text`` cover: ``git commit …``, ``all edits in this folder``."""
    rules = split_rules(text)
    if set(rules) == set(EDITS):
        return "all edits in this folder"
    return " and ".join(map(_words, rules))


def _words(rule: str) -> str:
    found = _RULE.fullmatch(rule)
    if found is None:
        return rule
    tool, pattern = found["tool"], found["pattern"]
    if tool in _COMMANDS:
        return _command(pattern) + _COMMANDS[tool]
    if pattern is None:
        return "all web searches" if tool == "web_search" else f"{_CLASSES.get(tool, tool)}, with any arguments"
    if tool == "python":
        return "Python in the sandbox, without network" if pattern == SANDBOXED else "exactly this code"
    if tool == "run_skill_script":
        skill, slash, script = pattern.partition("/")
        return f"{_plain(script)} of the skill {_plain(skill)}, with any arguments" if slash else rule
    if pattern.startswith("domain:"):
        host = pattern.removeprefix("domain:")
        what = "commands that connect to" if tool == "shell_network" else f"{tool} from"
        within = f"subdomains of {host[2:]}" if host.startswith("*.") else f"{host} and its subdomains"
        return f"{what} {within}"
    return _about(tool, pattern)


def _command(pattern: str | None) -> str:
    """Return ``npm run test …`` if any arguments may follow, otherwise the exact command."""
    if pattern is None or pattern in {"*", ":*"}:
        return "every command"
    return f"{pattern[:-2]} …" if pattern.endswith((":*", " *")) else pattern


def _about(tool: str, pattern: str) -> str:
    if pattern in _SQL:
        return f"calls of {tool} {_SQL[pattern]}"
    known = tool in _EDITORS or tool == "read_file" or tool in _CLASSES
    what = f"{_CLASSES.get(tool, tool)} on {_CLASSES.get(pattern) or _plain(pattern)}"
    return what if known else f"{what}, with any other arguments"


def _plain(pattern: str) -> str:
    """Return a pattern without the brackets that escape wildcard characters."""
    return _ESCAPED.sub(r"\1", pattern)


class EgressListener(Protocol):
    """A program's way out of its private network: the supervisor opens a listener there and passes it back."""

    @property
    def waited(self) -> float:
        """Return the seconds spent asking the user about hosts."""
        ...

    def offer(self) -> tuple[tuple[int, ...], str]:
        """Return the file descriptors that the supervisor inherits, and how its arguments name them."""
        ...

    def begin(self) -> None:
        """Note that the supervisor was started."""
        ...

    def close(self) -> None:
        """Note that the program has ended."""
        ...
