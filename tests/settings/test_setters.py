"""Who may set which setting: one table, from the fields, held for every setting in every layer."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest
import yaml
from annotated_types import Ge

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import AskedSetting
from ba_tui.core.values import frozen
from ba_tui.resources import places
from ba_tui.settings import LoadedSettings, Settings, as_data, leaves, load_settings
from ba_tui.settings.fields import Setter, SettingsGroup, about
from ba_tui.settings.layers import AllowedSettings
from ba_tui.settings.setters import setters

TABLE = dict(setters())
ENTRIES = {"providers": "corp", "sources": "shop", "mcp": "github"}
"""The names of entries that a project might write."""
SAMPLES: Mapping[str, Any] = {
    "add_dirs": ["/opt/shared"],
    "agents.at_once": 100,
    "analysis.mute_traps": ["all"],
    "hooks": {"stop": [{"command": "true"}]},
    "max_cost": 5,
    "max_tokens": 5,
    "model": "openai/gpt-6-sol",
    "other_instructions": ["gemini"],
    "permissions.allow": ["grep"],
    "permissions.ask": ["grep"],
    "permissions.deny": ["grep"],
    "plans.at_once": 100,
    "plans.deadline": 5,
    "plans.max_cost": 5,
    "team.bus_url": "redis://h",
    "memory.redis": "redis://h",
    "sources.NAME.url": "sqlite:///x",
    "compression.target": 0.7,
    "team.difference": 0.1,
    "compression.trigger": 0.9,
    "permission_mode": "auto",
    "secrets": "allow",
    "sandbox": "off",
    "system_prompt_file": "/opt/prompt.md",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".ba").mkdir(parents=True)
    return folder


def written(project: Path, key: str, value: object, file: str = "config.yaml") -> None:
    (project / ".ba" / file).write_text(yaml.safe_dump(nested(key, value)))


def nested(key: str, value: object) -> dict[str, Any]:
    found: Any = value
    for part in reversed(named(key).split(".")):
        found = {part: found}
    if key.startswith("providers.") and not key.endswith("base_url"):
        found["providers"]["corp"]["base_url"] = "http://corp.example/v1"
    return found


def named(key: str) -> str:
    return key.replace("NAME", ENTRIES.get(key.partition(".")[0], "NAME"))


def load(project: Path, *, trusted: bool) -> LoadedSettings:
    return load_settings({}, places(), project, {}, trusted=trusted)


@cache
def hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def hint_of(key: str) -> Any:
    kind: Any = Settings
    for part in filter(None, key.split(".")):
        while get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        kind = get_args(kind)[1] if part == "NAME" else hints(kind)[part]
    return kind


def sample(key: str) -> Any:
    """A value of the setting that is not its default."""
    if key in SAMPLES:
        return SAMPLES[key]
    hint, low = hint_of(key), 1
    while get_origin(hint) in {Annotated, type(int | None)} or type(None) in get_args(hint):
        low = max(low, *(each.ge for each in get_args(hint) if isinstance(each, Ge) and isinstance(each.ge, int)), 0)
        hint = get_args(hint)[0]
    default = default_of(key)
    if hint is bool:
        return not default
    if get_origin(hint) is Literal:
        return next(each for each in get_args(hint) if each not in {default, ""})
    if hint in {int, float}:
        return low if low != default else low + 1
    if get_origin(hint) is tuple:
        return ["/opt/x"]
    if get_origin(hint) is dict:
        return {"A_NAME": "value"}
    return "http://host.example/v1" if "url" in key else "text"


def default_of(key: str) -> object:
    group, _, name = key.rpartition(".")
    kind: Any = hint_of(group)
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return next(each.default for each in dataclasses.fields(kind) if each.name == name)


def in_effect(found: LoadedSettings, project: Path, key: str) -> bool:
    """Whether a value of the project's file is in the settings."""
    here = [source for name, source in found.sources.items() if f"{name}.".startswith(f"{named(key)}.")]
    return any(str(project) in source for source in here)


def allow_all(project: Path, asked: tuple[AskedSetting, ...]) -> None:
    for each in asked:
        AllowedSettings(places()).add(project, each)


def test_every_setting_is_in_the_table() -> None:
    assert {"model", "add_dirs", "providers.NAME.base_url", "mcp.servers.NAME.command", "hooks"} <= set(TABLE)
    known = {key for key in leaves(as_data(Settings())) if key.partition(".")[0] not in {"providers", "sources"}}
    assert known - set(TABLE) <= {"mcp.servers"}
    assert len(TABLE) > 130


def test_a_field_that_says_nothing_is_the_users_only() -> None:
    @frozen
    class Grown(SettingsGroup):
        named: str = dataclasses.field(default="", metadata=about("A new setting."))
        bare: str = ""

    assert dict(setters(Grown)) == {"named": Setter(), "bare": Setter()}
    assert Setter().who == "user"


def test_hosts_folders_programs_and_names_are_never_a_projects_alone() -> None:
    free = {key for key, setter in TABLE.items() if setter.who in {"anyone", "project"} and not setter.names}
    words = ("url", "host", "dirs", "write", "read", "private", "command", "endpoint", "redis", "backend", "env", "key")
    assert {key for key in free if any(word in key.split(".")[-1].split("_") for word in words)} == set()
    assert {key for key, setter in TABLE.items() if setter.names == "model"} == {
        "model", "small.model", "reasoning.model", "fallback_model",
    }  # fmt: skip
    assert all(setter.question for setter in TABLE.values() if setter.who == "asked" or setter.names)


@pytest.mark.parametrize("file", ["config.yaml", "config.local.yaml"])
@pytest.mark.parametrize("key", list(TABLE))
def test_a_project_that_is_not_trusted_sets_what_anyone_may(ba_home: Path, project: Path, key: str, file: str) -> None:
    written(project, key, sample(key), file)
    found = load(project, trusted=False)
    assert in_effect(found, project, key) is (TABLE[key].who == "anyone")
    assert found.asked == ()
    assert not [problem for problem in found.errors if not problem.foreign]


@pytest.mark.parametrize("file", ["config.yaml", "config.local.yaml"])
@pytest.mark.parametrize("key", [key for key, setter in TABLE.items() if not setter.lower])
def test_a_trusted_project_sets_what_the_table_says(ba_home: Path, project: Path, key: str, file: str) -> None:
    setter, value = TABLE[key], sample(key)
    if key == "providers.NAME.kind":
        value = "bedrock"
    written(project, key, value, file)
    found = load(project, trusted=True)
    if key.startswith("providers."):
        assert not in_effect(found, project, key), "the address of a provider needs a yes"
        allow_all(project, found.asked)
        found = load(project, trusted=True)
    stricter = value in setter.stricter
    free = setter.who in {"anyone", "project"}
    asked = key == "providers.NAME.base_url"
    assert in_effect(found, project, key) is (free or stricter or asked), found.warnings
    if setter.who == "asked":
        assert [each.setting for each in found.asked] == [named(key)]
        allow_all(project, found.asked)
        assert in_effect(load(project, trusted=True), project, key)


@pytest.mark.parametrize("key", [key for key, setter in TABLE.items() if setter.stricter])
def test_a_trusted_project_may_be_stricter(ba_home: Path, project: Path, key: str) -> None:
    for value in TABLE[key].stricter:
        written(project, key, value)
        found = load(project, trusted=True)
        if key.startswith("providers."):
            allow_all(project, found.asked)
            found = load(project, trusted=True)
        assert in_effect(found, project, key), value


@pytest.mark.parametrize("key", [key for key, setter in TABLE.items() if setter.lower])
def test_a_trusted_project_may_only_lower_a_limit(ba_home: Path, project: Path, key: str) -> None:
    default = default_of(key)
    limit = default if isinstance(default, int | float) else 50
    (ba_home / "config.yaml").write_text(yaml.safe_dump(nested(key, limit)))
    for value, counts in ((limit / 2 if isinstance(limit, float) else 1, True), (limit + 1, False)):
        written(project, key, value)
        assert in_effect(load(project, trusted=True), project, key) is counts


@pytest.mark.parametrize("key", ["model", "small.model", "reasoning.model", "fallback_model"])
@pytest.mark.parametrize(
    "model",
    ["local:./evil.gguf", "local:./evil\n.gguf", " local:evil.gguf", "scripted:../x.yaml", "scripted/x", "mine/x"],
)
def test_a_model_file_of_a_project_needs_a_question(ba_home: Path, project: Path, key: str, model: str) -> None:
    (ba_home / "config.yaml").write_text("providers: {mine: {kind: local}}\n")
    (project / "evil.gguf").write_text("x")
    written(project, key, model)
    assert not in_effect(load(project, trusted=False), project, key)
    found = load(project, trusted=True)
    assert not in_effect(found, project, key)
    (asked,) = found.asked
    assert not asked.allowed
    assert "./" not in asked.value, "the question names the whole path"
    allow_all(project, found.asked)
    assert in_effect(load(project, trusted=True), project, key)
    written(project, key, "local:./other.gguf")
    assert not in_effect(load(project, trusted=True), project, key), "another value is another question"


def test_an_allowed_folder_is_the_one_that_its_link_led_to(ba_home: Path, project: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = project / "data"
    link.symlink_to(tmp_path / "one")
    written(project, "add_dirs", ["../data", "lib"])
    found = load(project, trusted=True)
    assert found.settings.add_dirs == (project / ".ba" / "lib",), "a folder of the project needs no question"
    assert [(each.value, each.wants) for each in found.asked] == [
        (os.path.realpath(tmp_path / "one"), f"to work in {os.path.realpath(tmp_path / 'one')} too")
    ]
    assert "ba trust --allow-setting add_dirs=" in found.warnings[0].cure
    allow_all(project, found.asked)
    assert tmp_path / "one" in load(project, trusted=True).settings.add_dirs
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert load(project, trusted=True).settings.add_dirs == (project / ".ba" / "lib",)


def test_what_was_allowed_holds_for_one_project_and_lies_with_the_user(
    ba_home: Path, project: Path, tmp_path: Path
) -> None:
    written(project, "add_dirs", ["/opt/shared"])
    allow_all(project, load(project, trusted=True).asked)
    assert load(project, trusted=True).settings.add_dirs == (Path("/opt/shared"),)
    assert load(project, trusted=False).settings.add_dirs == ()
    other = tmp_path / "other"
    (other / ".ba").mkdir(parents=True)
    written(other, "add_dirs", ["/opt/shared"])
    assert load(other, trusted=True).settings.add_dirs == ()
    kept = ba_home / "allowed-settings.yaml"
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text("[broken\n")
    assert load(project, trusted=True).settings.add_dirs == ()


@pytest.mark.parametrize("value", [{"a": 1}, [["x"]], [{"a": 1}], 5, True, "\0", ["~nobody/x"], ["\0"], [None]])
@pytest.mark.parametrize("key", [key for key, setter in TABLE.items() if setter.question])
def test_a_value_of_the_wrong_kind_is_no_error_of_ba(ba_home: Path, project: Path, key: str, value: object) -> None:
    written(project, key, value)
    for trusted in (False, True):
        allow_all(project, load(project, trusted=trusted).asked)
        load(project, trusted=trusted)
    (ba_home / "config.yaml").write_text((project / ".ba" / "config.yaml").read_text())
    load(project, trusted=False)


@pytest.mark.parametrize("wide", ["/", "~", "HOME/..", "ROOT/..", "LINK"])
@pytest.mark.parametrize("layer", ["project", "user", "claude", "variable", "flag"])
def test_no_layer_opens_a_folder_around_the_project_or_the_home(
    ba_home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str, wide: str
) -> None:
    home = tmp_path / "home" / "ann"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "link").symlink_to("/")
    folder = wide.replace("HOME", str(home)).replace("ROOT", str(project)).replace("LINK", str(tmp_path / "link"))
    text, env, flags = yaml.safe_dump({"add_dirs": [folder]}), dict[str, str](), dict[str, object]()
    match layer:
        case "project":
            (project / ".ba" / "config.yaml").write_text(text)
        case "user":
            (ba_home / "config.yaml").write_text(text)
        case "claude":
            (home / ".claude").mkdir()
            (home / ".claude" / "settings.json").write_text(
                f'{{"permissions": {{"additionalDirectories": ["{folder}"]}}}}'
            )
        case "variable":
            env["BA_ADD_DIRS"] = folder
        case _:
            flags["add_dirs"] = [folder]
    if layer == "flag":
        with pytest.raises(UsageError, match=r"--add-dir: refused: .* covers"):
            load_settings(flags, places(), project, env, trusted=True)
        return
    found = load_settings(flags, places(), project, env, trusted=True)
    assert found.settings.add_dirs == ()
    assert found.asked == ()
    assert [problem.text.partition(":")[0] for problem in found.errors] == ["refused"]


@pytest.mark.parametrize("name", ["anthropic", "openai", "ollama", "bedrock", "gateway", "fromenv", "local", "demo"])
@pytest.mark.parametrize(
    "entry",
    [
        {"base_url": "http://evil.example"},
        {"kind": "openai", "base_url": "http://evil.example"},
        {"kind": "scripted"},
        {"tools": "text"},
        {"api_key_env": "OTHER_KEY"},
        {},
        "text",
    ],
)
def test_no_project_writes_under_the_name_of_a_known_provider(
    ba_home: Path, project: Path, name: str, entry: object
) -> None:
    (ba_home / "config.yaml").write_text("providers: {gateway: {base_url: 'http://gateway.example'}}\n")
    env = {"BA_PROVIDERS__FROMENV__BASE_URL": "http://env.example"}
    before = load_settings({}, places(), project, env).settings.providers
    (project / ".ba" / "config.local.yaml").write_text(yaml.safe_dump({"providers": {name: entry}}))
    found = load_settings({}, places(), project, env, trusted=True)
    assert found.settings.providers == before
    if entry == {}:
        return
    (error,) = found.errors
    assert error.key.split(".")[:2] == ["providers", name]
    assert error.line > 0
    assert f"can't change {name}" in error.text
    with pytest.raises(UsageError, match=rf"config\.local\.yaml:\d: providers\.{name}"):
        found.check()


def test_a_project_may_repeat_what_the_user_says_of_a_provider(ba_home: Path, project: Path) -> None:
    (ba_home / "config.yaml").write_text("providers: {corp: {base_url: 'http://corp.example', kind: openai}}\n")
    written(project, "providers.NAME.base_url", "http://corp.example")
    assert load(project, trusted=True).warnings == ()
    written(project, "providers.NAME.base_url", "http://other.example")
    assert len(load(project, trusted=True).errors) == 1


def test_a_provider_of_a_project_is_used_whole_or_not_at_all(ba_home: Path, project: Path) -> None:
    file, local = project / ".ba" / "config.yaml", project / ".ba" / "config.local.yaml"
    file.write_text("model: corp/x\nproviders: {corp: {base_url: 'http://corp.example', kind: anthropic}}\n")
    local.write_text("providers: {corp: {tools: text}}\n")
    found = load(project, trusted=True)
    assert "corp" not in found.settings.providers
    assert [(error.key, error.line) for error in found.errors] == [("model", 1)]
    assert found.settings.model != "corp/x"
    allow_all(project, found.asked)
    found = load(project, trusted=True)
    assert found.warnings == ()
    assert (found.settings.providers["corp"].base_url, found.settings.model) == ("http://corp.example", "corp/x")
    assert "corp" not in found.own.providers
    local.write_text("providers: {corp: {base_url: 'http://evil.example'}}\n")
    now = load(project, trusted=True)
    assert now.settings.providers["corp"].base_url == "http://corp.example"
    assert [each.value for each in now.asked if not each.allowed] == ["http://evil.example"]
