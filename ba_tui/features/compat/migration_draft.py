"""Collects the settings of another assistant as findings and as changes to config.yaml, and writes the changes.

Nothing is written before ``write_changes``. The other modules of this folder interpret each assistant's files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from ba_tui.core.errors import UsageError
from ba_tui.core.text.json_text import read_jsonc
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.ingress import shown
from ba_tui.resources import UserFolders, read_regular, save_whole
from ba_tui.settings.document import printable, read_document
from ba_tui.settings.editing import add_item, put_value
from ba_tui.settings.mcp_configured import changed
from ba_tui.settings.mcp_files import read_entry, tool_safe

FindingState: TypeAlias = Literal["already", "write", "by hand", "no"]
"""In use already, to be written, to be done by the user, or unsupported."""
MOST_FILES = 100_000
SHOWN = 60
LONGEST_NAME = 200


@frozen
class Finding:
    """A setting or file of another assistant, at ``line`` of the file ``where``; 0 if unknown."""

    what: str
    state: FindingState
    text: str
    where: str = ""
    line: int = 0


@frozen
class Change:
    """A new ``value`` of the dotted ``key`` of config.yaml. ``adds``: append it to the list there."""

    key: str
    value: Any
    adds: bool = False

    @property
    def text(self) -> str:
        """Return the change for display, without values of environment variables, which may be private."""
        name, value = self.key, self.value if isinstance(self.value, str) else json.dumps(self.value)
        return name if name.startswith("environment.set.") else f"{name}: {one_line(value, SHOWN)}"


class MigrationDraft:
    """The findings and changes for one assistant. ``own``: the content of the user's config.yaml; ``before``: drafts
    whose changes are made first; ``secret``: returns whether a text contains a key or a password."""

    def __init__(
        self, tool: str, own: Mapping[str, Any], before: Sequence[MigrationDraft], secret: Callable[[str], bool]
    ) -> None:
        self.tool = tool
        self._secret = secret
        self._own = own
        self._before = tuple(change for draft in before for change in draft.changes)
        self.findings: list[Finding] = []
        self.changes: list[Change] = []
        self.problems: list[str] = []
        self.file: Path | None = None
        """The file being read, for new findings."""

    def note(self, what: str, state: FindingState, text: str, line: int = 0) -> None:
        where = shown(self.file) if self.file else ""
        self.findings.append(Finding(printable(one_line(what, LONGEST_NAME)), state, printable(text), where, line))

    def no(self, what: str, why: str, line: int = 0) -> None:
        self.note(what, "no", f"not supported: {why}", line)

    def set(self, key: str, value: Any, what: str) -> None:
        """Set ``key`` to ``value`` unless config.yaml sets it already."""
        change, now = Change(key, value), self._at(key)
        if self._secret(str(value)):
            self.note(what, "by hand", f"it holds a key or a password, which is never copied: set {key} yourself")
        elif now == value or change in self._before:
            self.note(what, "already", f"your config.yaml says {change.text}")
        elif now is not None or any(each.key == key for each in self._before):
            self.note(what, "already", f"your config.yaml sets {key} otherwise, and that stays")
        elif not any(each.key == key for each in self.changes):
            self.changes.append(change)
            self.note(what, "write", change.text)

    def add(self, key: str, item: Any, what: str) -> None:
        """Append ``item`` to the list ``key`` unless the list has it."""
        change, now = Change(key, item, adds=True), self._at(key)
        if (isinstance(now, list) and item in now) or change in self._before:
            self.note(what, "already", f"your config.yaml has {change.text}")
        elif change not in self.changes:
            self.changes.append(change)
            self.note(what, "write", change.text)

    def has(self, key: str) -> bool:
        """Return whether config.yaml sets ``key`` or a part of it, counting planned changes."""
        return self._at(key) is not None or any(
            f"{each.key}.".startswith(f"{key}.") for each in (*self._before, *self.changes)
        )

    def count(self, what: str, folder: Path, pattern: str, state: FindingState, text: str) -> None:
        """Note the number of files in ``folder`` that match ``pattern``, if any."""
        if number := sum(1 for _ in islice(folder.rglob(pattern), MOST_FILES)):
            self.note(what, state, f"{number:,} in {shown(folder)}: {text}")

    def read(self, what: str, folder: Path, pattern: str, known: Collection[Path], otherwise: str) -> None:
        """Count the files of a folder. ba reads them if it is one of ``known``; for others show ``otherwise``."""
        if folder in known:
            self.count(what, folder, pattern, "already", "ba reads them")
        else:
            self.count(what, folder, pattern, "by hand", otherwise)

    def _at(self, key: str) -> Any:
        data: Any = self._own
        for part in key.split("."):
            data = cast("Mapping[str, Any]", data).get(part) if isinstance(data, Mapping) else None
        return data


LARGEST = 50_000_000
AGENTS = "ba reads agents from files of their own; see ba guide agents"


def text_of(path: Path, draft: MigrationDraft) -> str | None:
    """Return the text of a file; None if it does not exist or can't be read, which ``draft`` notes as a problem."""
    try:
        return read_regular(path, LARGEST).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        draft.problems.append(f"{path}: can't be read: {error.strerror or error}")
        return None


def json_object(path: Path, text: str, draft: MigrationDraft) -> dict[str, Any]:
    """Parse the JSON object in ``text``, the content of ``path``; return {} and note a problem if it is invalid."""
    try:
        data: Any = read_jsonc(text)
    except json.JSONDecodeError as error:
        draft.problems.append(f"{path}:{error.lineno}: can't be read as JSON ({error.msg})")
        return {}
    except (ValueError, RecursionError):
        draft.problems.append(f"{path}: can't be read as JSON")
        return {}
    if not isinstance(data, dict):
        draft.problems.append(f"{path}:1: expected a JSON object")
        return {}
    return cast("dict[str, Any]", data)


def group(data: Any, key: str) -> dict[str, Any]:
    """Return the object at ``key`` of ``data``; empty if there is none."""
    value = cast("Mapping[str, Any]", data).get(key) if isinstance(data, Mapping) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


COPY = "config.yaml.before-migrate"


def own_settings(places: UserFolders) -> dict[str, Any]:
    """Return the content of the user's config.yaml. Raises UsageError if it is invalid."""
    document = read_document(places.settings)
    if document and document.broken:
        raise UsageError(f"{document.problems[0]}.", "Correct the file first: ba config edit.")
    return document.data if document else {}


def write_changes(places: UserFolders, changes: Sequence[Change]) -> Path | None:
    """Copy config.yaml and make ``changes``, which keep its comments; return the copy, or None if there was no file.
    Raises UsageError: a change does not fit. StorageError: a file can't be written."""
    kept = _copied(places.settings)
    for change in changes:
        if change.adds:
            add_item(places, change.key, change.value)
        else:
            put_value(places, change.key, change.value)
    return kept


def _copied(path: Path) -> Path | None:
    try:
        raw = read_regular(path, 2_000_000)
    except FileNotFoundError:
        return None
    names = (path.with_name(COPY if number == 1 else f"{COPY}.{number}") for number in count(1))
    copy = next(each for each in names if not each.exists())
    save_whole(copy, raw.decode("utf-8"), mode=0o600)
    return copy


BUILT_IN = frozenset({"anthropic", "openai", "ollama", "lmstudio", "llamacpp", "vllm", "bedrock", "vertex", "azure"})
"""Providers that have the same name in ba."""
_NAME = regex(r"[A-Za-z][\w-]*")
_VARIABLE = regex(r"[A-Za-z_]\w*")


def provider(draft: MigrationDraft, name: str, url: Any, variable: Any) -> None:
    """Add a provider's address and the name of the variable with its key. Keys are never copied."""
    what = f"provider {name}"
    if not _NAME.fullmatch(name) or not isinstance(url, str):
        if name not in BUILT_IN or url is not None:
            draft.no(what, "it has no name or no address that ba could use")
        return
    parts = urlsplit(re.sub(r"[\s{}]", "", url))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query or "{" in url:
        draft.no(what, "its address has a key, a query or a variable in it: set it up with /setup")
        return
    if name not in BUILT_IN:
        draft.set(f"providers.{name}.kind", "openai", what)
    draft.set(f"providers.{name}.base_url", url, what)
    if isinstance(variable, str) and _VARIABLE.fullmatch(variable):
        draft.set(f"providers.{name}.api_key_env", variable, what)
        draft.note(what, "by hand", f"its key is read from {variable}: set it in your shell, or type /setup")


_BY_NAME = frozenset({"bearer_token_env_var", "env_http_headers", "env_vars", "required"})
_SECRET = regex(r"(?i)key|token|secret|pass|auth|credential|pat$")
_OPENCODE_VARIABLE = regex(r"\{env:(\w+)\}")


def codex_server(draft: MigrationDraft, name: str, given: Mapping[str, Any]) -> None:
    """Add an MCP server of Codex, whose tokens and headers may be names of variables."""
    entry = {key: value for key, value in given.items() if key not in _BY_NAME}
    headers = dict(entry.pop("http_headers", None) or {})
    if isinstance(token := given.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    if isinstance(named := given.get("env_http_headers"), dict):
        headers |= {key: f"${{{value}}}" for key, value in cast("dict[str, Any]", named).items()}
    if isinstance(passed := given.get("env_vars"), list):
        entry["env"] = {**(entry.get("env") or {}), **{f"{each}": f"${{{each}}}" for each in cast("list[Any]", passed)}}
    server(draft, name, {**entry, "headers": headers} if headers else entry)


def opencode_server(draft: MigrationDraft, name: str, given: Mapping[str, Any]) -> None:
    """Add an MCP server of OpenCode, which writes ``{env:NAME}`` for a variable."""
    server(draft, name, {key: _with_variables(value) for key, value in given.items()})


def _with_variables(value: Any) -> Any:
    if isinstance(value, str):
        return _OPENCODE_VARIABLE.sub(r"${\1}", value)
    if isinstance(value, list):
        return [_with_variables(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _with_variables(each) for key, each in cast("dict[str, Any]", value).items()}
    return value


def server(draft: MigrationDraft, name: str, given: Mapping[str, Any]) -> None:
    """Add an MCP server given in the form of ``.mcp.json``, unless it contains a key or a password."""
    what, ours = f"MCP server {name}", tool_safe(name)
    read = read_entry(dict(given))
    if read.settings is None or not ours:
        draft.no(what, read.problem or "expected a name with letters or digits")
        return
    for remark in read.remarks:
        draft.no(f"{what}, {remark.partition(':')[0]}", remark.partition(": ")[2])
    pairs = {**read.settings.env, **read.settings.headers}
    if any("${" not in value and (key in read.settings.headers or _SECRET.search(key)) for key, value in pairs.items()):
        draft.note(what, "by hand", f"it holds a key, which is never copied: see ba mcp add --help, and name it {ours}")
        return
    draft.set(f"mcp.servers.{ours}", changed(read.settings), what)
