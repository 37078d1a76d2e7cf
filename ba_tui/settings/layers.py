"""Merge the layers of settings: flags, environment, project, user, Claude Code's files, bundled.

Every value has a source. Invalid values are left out and reported. It writes only the values that the user has
allowed a project's settings to have: in the user's config folder, by the real path of the project's root.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import AskedSetting, RuleLine
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen, late
from ba_tui.flags import flag_of
from ba_tui.ingress import within
from ba_tui.resources import UserFolders, bundled, exclusive, read_regular, save_whole, user_home
from ba_tui.settings.checks import Layer, SettingPath, check, dotted, names
from ba_tui.settings.claude_files import ForeignFile, claude_paths, read_claude_file
from ba_tui.settings.document import KeyPath, Problem, SettingsDocument, load_mapping, read_document
from ba_tui.settings.environment import OTHERS, EnvironmentLayer, dotenv
from ba_tui.settings.model import Settings
from ba_tui.settings.plain import field_names, made
from ba_tui.settings.sections.tools import HookGroup
from ba_tui.settings.setters import ProjectRules, drop_broad_folders, problem_notices

if TYPE_CHECKING:
    from ba_tui.settings.claude_layer import ClaudeLayer


FILE = "allowed-settings.yaml"
HEADER = """\
# Values that you allowed the settings of a project to have. Remove one to take that back, or run:
# ba trust --revoke FOLDER
"""


class AllowedSettings:
    """The file of allowed values. All methods read or write it: call them off the event loop."""

    def __init__(self, where: UserFolders) -> None:
        self.path = where.config / FILE

    def of(self, root: Path) -> Set[tuple[str, str]]:
        """Return the allowed settings and values of the project at ``root``; none when the file can't be parsed."""
        try:
            entries: Any = load_mapping(self.path).get(os.path.realpath(root))
        except StorageError:
            return frozenset()
        listed = cast("list[Any]", entries) if isinstance(entries, list) else []
        pairs = (cast("dict[str, Any]", each) for each in listed if isinstance(each, dict))
        return frozenset((str(pair.get("setting")), str(pair.get("value"))) for pair in pairs)

    def add(self, root: Path, asked: AskedSetting) -> None:
        """Save one allowed value. Raises StorageError."""
        entry = {"setting": asked.setting, "value": asked.value}
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            name = os.path.realpath(root)
            before: Any = kept.get(name)
            entries = cast("list[Any]", before) if isinstance(before, list) else []
            kept[name] = [*(each for each in entries if each != entry), entry]
            self._save(kept)

    def drop(self, root: Path, setting: str = "") -> None:
        """Remove the allowed values of a project, or only those of ``setting``. Raises StorageError."""
        if not self.path.exists():
            return
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            before: Any = kept.pop(os.path.realpath(root), None)
            entries = cast("list[Any]", before) if setting and isinstance(before, list) else []
            pairs = [cast("dict[str, Any]", each) for each in entries if isinstance(each, dict)]
            if left := [pair for pair in pairs if pair.get("setting") != setting]:
                kept[os.path.realpath(root)] = left
            if before is not None:
                self._save(kept)

    def _save(self, kept: dict[str, Any]) -> None:
        save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)


@frozen
class HookLine:
    """A group of hooks for ``event``, with its file and line."""

    event: str
    group: HookGroup
    source: str


@frozen
class LoadedSettings:
    """The merged settings. ``sources``: where each value came from, by dotted key. ``own``: the settings without the
    project's files; only addresses in these may receive a key."""

    settings: Settings
    sources: Mapping[str, str]
    own: Settings
    warnings: tuple[Problem, ...] = ()
    rules: tuple[RuleLine, ...] = ()
    """The permission rules of ``settings``, each with its own source."""
    hooks: tuple[HookLine, ...] = ()
    """The hooks of ``settings``, each with its own source."""
    foreign: tuple[ForeignFile, ...] = ()
    """The settings files of Claude Code, with the settings that ba uses."""
    wanted_model: str = ""
    """The model in those files, by Claude Code's name; used when no other layer names one."""
    asked: tuple[AskedSetting, ...] = ()
    """Values in the project's files that need the user's permission."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Return the warnings that are errors in ``ba config validate``."""
        return tuple(problem for problem in self.warnings if problem.fatal)

    def notices(self, *, attended: bool) -> list[Notice]:
        """Return the warnings as notices for the start; see problem_notices."""
        return problem_notices(self.warnings, self.asked, attended=attended)

    def check(self) -> None:
        """Raise UsageError for an error in a trusted file: an unattended run must not start with it."""
        if wrong := [problem for problem in self.errors if not problem.foreign]:
            raise UsageError(f"{wrong[0]}.", wrong[0].cure or "Correct it: ba config edit.")


def load_settings(
    flags: Mapping[str, object],
    places: UserFolders,
    project: Path,
    env: Mapping[str, str] | None = None,
    *,
    trusted: bool = False,
) -> LoadedSettings:
    """Load and merge all layers. ``flags`` are dotted keys (``model``, ``permissions.allow``); None means absent.
    ``trusted``: whether the user trusts the current contents of ``project``; otherwise its files may set little.

    Raises:
        UsageError: a flag has a wrong value. Other errors are left out and reported in ``warnings``.
    """
    rules: list[RuleLine] = []
    hooks: list[HookLine] = []
    problems: list[Problem] = []
    bundled_layers, files = _files(places, project, trusted=trusted)
    claude = _claude(project, trusted=trusted)
    theirs = [each.layer for each in claude]
    layers = [*bundled_layers, *theirs, *files, *_given(flags, places, os.environ if env is None else env)]
    of_user = [layer for layer in layers if not layer.project]
    project_rules = ProjectRules(project, trusted, frozenset(), of_user)
    if len(of_user) < len(layers):
        project_rules.allowed = AllowedSettings(places).of(project)
    for layer in layers:
        if layer.project:
            project_rules.apply(layer)
        check(layer)
        keep_asking(layer)
        _prompt_by_flag(layer)
        _anchor(layer)
        _keep_narrow(layer, project)
        rules += _rules(layer)
        hooks += _hooks(layer)
        problems += layer.told()
    data, sources = _merged(layers)
    settings = own = made(Settings, data)
    if len(of_user) < len(layers):
        own = made(Settings, _merged(of_user)[0])
    known = {key: sources.get(key, "default") for key in leaves(as_data(settings))}
    if settings.permission_mode == "bypass" and (who := next((each for each in claude if each.no_bypass), None)):
        raise UsageError(
            f"Mode bypass is disabled by {who.report.path}.", "Remove disableBypassPermissionsMode there, or the flag."
        )
    return LoadedSettings(
        settings,
        known,
        own,
        tuple(problems),
        tuple(dict.fromkeys(rules)),
        tuple(hooks),
        tuple(each.report for each in claude),
        next((each.model for each in reversed(claude) if each.model), ""),
        tuple(project_rules.asked.values()),
    )


def setting_files(places: UserFolders, project: Path) -> dict[str, Path]:
    """Return ba's settings files by the name of their layer, lowest first; they need not exist."""
    files = {"bundled": bundled("config") / "default.yaml", "yours": places.settings}
    folder = project / ".ba"
    if os.path.realpath(folder) != os.path.realpath(places.config):
        files |= {"project": folder / "config.yaml", "project, local": folder / "config.local.yaml"}
    return files


def as_data(value: Any) -> Any:
    """Convert settings to data for YAML or JSON."""
    if is_dataclass(value):
        return {name: as_data(getattr(value, name)) for name in field_names(type(value))}
    if isinstance(value, Mapping):
        return {name: as_data(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [as_data(item) for item in cast("Sequence[Any]", value)]
    return str(value) if isinstance(value, Path) else value


def leaves(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a nested mapping to dotted keys and values."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            found |= leaves(cast("Mapping[str, Any]", value), f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _claude(project: Path, *, trusted: bool) -> list[ClaudeLayer]:
    """Return the layers of Claude Code's settings files, lowest first; all of ba's own files rank above them."""
    home = user_home()
    if not any((folder / ".claude").is_dir() for folder in (home, project) if folder):
        return []
    layers: list[ClaudeLayer] = []
    claude_layer = late("ba_tui.settings.claude_layer:claude_layer")
    for path, of_project in claude_paths(project):
        root = project if of_project else None
        if file := read_claude_file(path, root):
            layers.append(claude_layer(file, root, trusted=trusted))
    return layers


def _files(places: UserFolders, project: Path, *, trusted: bool) -> tuple[list[Layer], list[Layer]]:
    """Return the bundled layer, and the layers of ba's own files."""
    layers: list[Layer] = []
    for name, path in setting_files(places, project).items():
        of_project = name.startswith("project")
        if document := read_document(path, within(project) if of_project else read_regular):
            layer = _file(document, "bundled" if name == "bundled" else str(path))
            layer.kind = "bundled" if name == "bundled" else "user"
            if of_project:
                layer.kind = "project"
                layer.project, layer.foreign = True, not trusted
            layers.append(layer)
    return [each for each in layers if each.kind == "bundled"], [each for each in layers if each.kind != "bundled"]


def _given(flags: Mapping[str, object], places: UserFolders, env: Mapping[str, str]) -> list[Layer]:
    """Return the layers of environment variables, then of flags."""
    layers: list[Layer] = []
    try:
        layers.append(_variables(dotenv(places), str(places.dotenv)))
    except StorageError as error:
        layers.append(_variables({}, ""))
        layers[-1].problems.append(
            Problem(str(places.dotenv), str(error).removeprefix(f"{places.dotenv} ").rstrip("."))
        )
    layers.append(_variables(env, ""))
    # Flags are checked separately: a wrong flag is an error, while a wrong line in a file is only reported.
    given = _flags(flags)
    check(given)
    if given.problems:
        first = given.problems[0]
        raise UsageError(f"{first.where.removeprefix('flag ')}: {first.text}.", "See ba --help.")
    return [*layers, given]


def _file(document: SettingsDocument, name: str) -> Layer:
    def place(path: KeyPath) -> SettingPath:
        return (name, 0) if name == "bundled" else (name, document.line(path))

    return Layer(document.data, place, document.path.parent, list(document.problems))


def keep_asking(layer: Layer) -> None:
    """Remove the mode bypass unless a flag sets it: files and variables would make it permanent."""
    if layer.kind != "flag" and layer.data.get("permission_mode") == "bypass":
        layer.complain(("permission_mode",), "bypass works only as a flag: --permission-mode bypass")
        layer.drop(("permission_mode",))


def _prompt_by_flag(layer: Layer) -> None:
    """Remove a system prompt as text unless a flag sets it: it would override the file that a flag names."""
    if layer.kind != "flag" and layer.data.get("system_prompt") is not None:
        layer.complain(("system_prompt",), "works only as a flag: --system-prompt TEXT; use system_prompt_file")
        layer.drop(("system_prompt",))


def _variables(env: Mapping[str, str], file: str) -> Layer:
    source = EnvironmentLayer(env)

    def place(path: KeyPath) -> SettingPath:
        name = source.name(path)
        return (f"{name} in {file}" if file else name, 0)

    layer = Layer(source.data(), place, Path.cwd() if _has_cwd() else Path("/"))
    for name in env:
        group = name.removeprefix("BA_").split("__")[0].lower()
        if not name.startswith("BA_") or name in OTHERS or group in names(()):
            continue
        # Other programs have variables with this prefix, so only a near miss is reported.
        if close := nearest(group, names(()), 0.75):
            text = f"unknown variable; did you mean BA_{close.upper()}?"
            layer.problems.append(Problem(name, text, fatal=False))
    return layer


def _has_cwd() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _flags(flags: Mapping[str, object]) -> Layer:
    data: dict[str, Any] = {}
    for key, value in flags.items():
        if value is None:
            continue
        *groups, last = key.split(".")
        holder = data
        for group in groups:
            holder = holder.setdefault(group, {})
        holder[last] = list(cast("list[Any]", value)) if isinstance(value, list | tuple) else value

    def place(path: KeyPath) -> SettingPath:
        named = flag_of(dotted(path))
        return (f"flag {named}" if named else "flags", 0)

    return Layer(data, place, Path.cwd() if _has_cwd() else Path("/"), kind="flag")


def _anchor(layer: Layer) -> None:
    """Make relative paths absolute: from the file's folder, or for flags and variables from the working folder."""

    def absolute(text: Any) -> str:
        try:
            return str(layer.folder / Path(str(text)).expanduser())
        except RuntimeError:
            return str(layer.folder / str(text))

    groups: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
        (layer.data, ("add_dirs", "tool_dirs")),
        (layer.data.get("commands", {}), ("write", "read")),
    )
    for group, keys in groups:
        for key in keys:
            if key in group:
                group[key] = [absolute(item) for item in group[key]]
    if "system_prompt_file" in layer.data:
        layer.data["system_prompt_file"] = absolute(layer.data["system_prompt_file"])


def _keep_narrow(layer: Layer, project: Path) -> None:
    """Remove folders that are too broad to work in. Raises UsageError for one that a flag names."""
    before = len(layer.problems)
    drop_broad_folders(layer, project)
    if layer.kind == "flag" and (found := layer.problems[before:]):
        raise UsageError(f"{found[0].where.removeprefix('flag ')}: {found[0].text}.", found[0].cure)


def _merged(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the merged data of all ``layers``, and the source of each value."""
    data: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        _merge(data, layer.data, layer, (), sources)
        for name in layer.void:
            data.get("providers", {}).pop(name, None)
    return data, sources


def _merge(into: dict[str, Any], data: Mapping[str, Any], layer: Layer, path: KeyPath, sources: dict[str, str]) -> None:
    """Merge ``data`` into ``into``: scalars replace, lists are appended, groups are merged."""
    for key, value in data.items():
        here = (*path, key)
        name = dotted(here)
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), cast("Mapping[str, Any]", value), layer, here, sources)
        elif isinstance(value, list | tuple):
            items = list(cast("list[Any]", value))
            if items or key not in into:
                earlier = [sources[name]] if into.get(key) else []
                into[key] = _unique([*into.get(key, ()), *items])
                sources[name] = ", ".join([*earlier, layer.source(here)])
        else:
            into[key] = value
            sources[name] = layer.source(here)


def _unique(items: Sequence[Any]) -> list[Any]:
    """Return the distinct items in order; they need not be hashable."""
    try:
        return list(dict.fromkeys(items))
    except TypeError:
        return [item for index, item in enumerate(items) if item not in items[:index]]


def _rules(layer: Layer) -> list[RuleLine]:
    lists: Mapping[str, Any] = layer.data.get("permissions", {})
    return [
        _line(entry, verdict, layer, index)
        for verdict in ("deny", "ask", "allow")
        for index, entry in enumerate(lists.get(verdict, ()))
    ]


def _line(entry: Any, verdict: str, layer: Layer, index: int) -> RuleLine:
    """Read one entry of a list of rules: a text, or a group with a rule and its conditions."""
    source = layer.source(("permissions", verdict, index))
    if not isinstance(entry, Mapping):
        return RuleLine(str(entry), verdict, source, layer=layer.kind)
    group = cast("Mapping[str, Any]", entry)
    terms = {key: value for key, value in group.items() if key != "rule"}
    said = json.dumps(terms, sort_keys=True, ensure_ascii=False, default=str) if terms else ""
    return RuleLine(str(group["rule"]), verdict, source, layer=layer.kind, terms=said)


def _hooks(layer: Layer) -> list[HookLine]:
    events: Mapping[str, Any] = layer.data.get("hooks", {})
    return [
        HookLine(event, made(HookGroup, group), layer.source(("hooks", event, index)))
        for event, groups in events.items()
        for index, group in enumerate(groups)
    ]
