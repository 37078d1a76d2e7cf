"""The layers of settings and how they become one: flags, environment, project, person, Claude Code's files, bundled.

Every value knows its source. What is wrong in a layer is left out and told; nothing is ever written here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.ports.trust import AskedSetting
from ba_tui.core.values import frozen
from ba_tui.ingress import within
from ba_tui.resources import Places, bundled, read_regular, user_home
from ba_tui.settings.allowed import AllowedSettings
from ba_tui.settings.checks import Layer, SettingPath, check, dotted, names
from ba_tui.settings.document import KeyPath, Problem, SettingsDocument, read_document
from ba_tui.settings.environment import OTHERS, EnvironmentLayer, dotenv
from ba_tui.settings.foreign import ForeignFile
from ba_tui.settings.model import Settings
from ba_tui.settings.plain import made
from ba_tui.settings.sections.hooks import HookGroup
from ba_tui.settings.setters import ProjectRules, drop_broad_folders, problem_notices

if TYPE_CHECKING:
    from ba_tui.settings.claude.layer import ClaudeLayer

FLAGS = {
    "add_dirs": "--add-dir",
    "small.model": "--small-model",
    "reasoning.model": "--reasoning-model",
    "mcp.config": "--mcp-config",
    "mcp.strict": "--strict-mcp-config",
}


@frozen
class HookLine:
    """A group of hooks as it was set for ``event``, and where it stands."""

    event: str
    group: HookGroup
    source: str


@frozen
class Loaded:
    """``sources``: dotted key to where its value came from. ``warnings``: one line each, see Problem. ``own``: the
    settings without the project's files: an address in them may get a key."""

    settings: Settings
    sources: Mapping[str, str]
    own: Settings
    warnings: tuple[Problem, ...] = ()
    rules: tuple[RuleLine, ...] = ()
    """The permission rules of ``settings``, each with its own source."""
    hooks: tuple[HookLine, ...] = ()
    """The hooks of ``settings``, likewise."""
    foreign: tuple[ForeignFile, ...] = ()
    """The settings files of Claude Code, and what of them counts."""
    wanted_model: str = ""
    """The model that those ask for, by a name of Claude Code's; it counts where nothing else names one."""
    asked: tuple[AskedSetting, ...] = ()
    """What the project's files ask for that only the user can allow."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The warnings that are errors in ``ba config validate``."""
        return tuple(problem for problem in self.warnings if problem.fatal)

    def notices(self, *, attended: bool) -> list[Notice]:
        """The warnings, as they are said at the start; see problem_notices."""
        return problem_notices(self.warnings, self.asked, attended=attended)

    def check(self) -> None:
        """Raises UsageError for an error in a file that counts here: a run that nobody attends must not begin."""
        if wrong := [problem for problem in self.errors if not problem.foreign]:
            raise UsageError(f"{wrong[0]}.", wrong[0].cure or "Correct it: ba config edit.")


def load_settings(
    flags: Mapping[str, object],
    places: Places,
    project: Path,
    env: Mapping[str, str] | None = None,
    *,
    trusted: bool = False,
) -> Loaded:
    """All layers as one. ``flags`` are dotted keys (``model``, ``permissions.allow``); None means not given.
    ``trusted``: whether the person trusts ``project`` as it is; its files may set little otherwise.

    Raises:
        UsageError: a flag has a wrong value. Everything else that is wrong is in ``warnings``, and left out.
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
    return Loaded(
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


def setting_files(places: Places, project: Path) -> dict[str, Path]:
    """Every file of ba's that settings are read from, by the name of its layer, lowest first; they need not exist."""
    files = {"bundled": bundled("config") / "default.yaml", "yours": places.settings}
    folder = project / ".ba"
    if os.path.realpath(folder) != os.path.realpath(places.config):
        files |= {"project": folder / "config.yaml", "project, local": folder / "config.local.yaml"}
    return files


def as_data(value: Any) -> Any:
    """Settings as what a YAML or JSON file would hold."""
    if is_dataclass(value):
        return {each.name: as_data(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: as_data(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [as_data(item) for item in cast("Sequence[Any]", value)]
    return str(value) if isinstance(value, Path) else value


def leaves(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping as dotted keys and values."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            found |= leaves(cast("Mapping[str, Any]", value), f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _claude(project: Path, *, trusted: bool) -> list[ClaudeLayer]:
    """Those of Claude Code's settings files, lowest first; all of ba's own files rank above them."""
    home = user_home()
    if not any((folder / ".claude").is_dir() for folder in (home, project) if folder):
        return []
    from ba_tui.settings.claude.files import claude_paths, read_claude_file  # noqa: PLC0415 - not everybody has any
    from ba_tui.settings.claude.layer import claude_layer  # noqa: PLC0415

    layers: list[ClaudeLayer] = []
    for path, of_project in claude_paths(project):
        root = project if of_project else None
        if file := read_claude_file(path, root):
            layers.append(claude_layer(file, root, trusted=trusted))
    return layers


def _files(places: Places, project: Path, *, trusted: bool) -> tuple[list[Layer], list[Layer]]:
    """The bundled layer, and those of ba's own files."""
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


def _given(flags: Mapping[str, object], places: Places, env: Mapping[str, str]) -> list[Layer]:
    """What the person says from outside: variables, then flags."""
    layers: list[Layer] = []
    try:
        layers.append(_variables(dotenv(places), str(places.dotenv)))
    except StorageError as error:
        layers.append(_variables({}, ""))
        layers[-1].problems.append(
            Problem(str(places.dotenv), str(error).removeprefix(f"{places.dotenv} ").rstrip("."))
        )
    layers.append(_variables(env, ""))
    # Checked on their own, because a wrong flag stops everything while a wrong line in a file does not.
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
    """Mode bypass is for one start, by a flag: a file or a variable would make it the rule."""
    if layer.kind != "flag" and layer.data.get("permission_mode") == "bypass":
        layer.complain(("permission_mode",), "bypass works only as a flag: --permission-mode bypass")
        layer.drop(("permission_mode",))


def _prompt_by_flag(layer: Layer) -> None:
    """A system prompt in words is for one start, by a flag: else it would win over a file that a flag names."""
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
        import difflib  # noqa: PLC0415 - for a slip alone

        # Other programs have variables that begin like ours, so only a near miss is worth a word.
        if close := difflib.get_close_matches(group, names(()), 1, 0.75):
            text = f"unknown variable; did you mean BA_{close[0].upper()}?"
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
        names = [str(part) for part in path if isinstance(part, str)]
        named = (
            FLAGS.get(".".join(names)) or FLAGS.get(names[-1]) or f"--{names[-1].replace('_', '-')}" if names else ""
        )
        return (f"flag {named}" if named else "flags", 0)

    return Layer(data, place, Path.cwd() if _has_cwd() else Path("/"), kind="flag")


def _anchor(layer: Layer) -> None:
    """Relative paths start from the folder of the file that names them; flags and variables from where we are."""

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
    """Leave out folders that are too wide to work in. Raises UsageError for one that a flag names."""
    before = len(layer.problems)
    drop_broad_folders(layer, project)
    if layer.kind == "flag" and (found := layer.problems[before:]):
        raise UsageError(f"{found[0].where.removeprefix('flag ')}: {found[0].text}.", found[0].cure)


def _merged(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The data of all ``layers`` as one, and the source of each value."""
    data: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        _merge(data, layer.data, layer, (), sources)
        for name in layer.void:
            data.get("providers", {}).pop(name, None)
    return data, sources


def _merge(into: dict[str, Any], data: Mapping[str, Any], layer: Layer, path: KeyPath, sources: dict[str, str]) -> None:
    """Scalars override, lists grow, groups merge."""
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
    """Each item once, in order, also those that can't be hashed."""
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
    """One entry of a list of rules: a text, or a group of a rule and its terms."""
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
