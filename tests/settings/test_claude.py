"""Settings files of Claude Code as settings of ba: what counts, what is named, and what never counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.tool import Effect
from ba_tui.permissions.rule import Subject, read_rule, read_rules
from ba_tui.resources import places
from ba_tui.settings import LoadedSettings, load_settings
from ba_tui.settings.claude_files import foreign_notices
from ba_tui.settings.claude_rules import translated

SCHEMA = (Path(__file__).parent / "claude_keys.txt").read_text().split()
"""The keys of Claude Code's settings in its version 2.1.197."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write(folder: Path, settings: object, name: str = "settings.json") -> Path:
    path = folder / ".claude" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=2))
    return path


def load(project: Path, *, trusted: bool = True, **flags: object) -> LoadedSettings:
    return load_settings(flags, places(), project, {}, trusted=trusted)


def rules(loaded: LoadedSettings) -> list[tuple[str, str]]:
    assert read_rules(each for each in loaded.rules if each.layer == "claude")[1] == []
    return [(line.verdict, line.rule) for line in loaded.rules if line.layer == "claude"]


def named(loaded: LoadedSettings) -> dict[str, str]:
    return {each.key: each.why for file in loaded.foreign for each in file.unsupported}


@pytest.mark.parametrize(
    ("rule", "ours"),
    [
        ("Bash", ["shell"]),
        ("Bash(*)", ["shell"]),
        ("Bash(npm run test:*)", ["shell(npm run test:*)"]),
        ("Bash(git *)", ["shell(git:*)"]),
        ("Bash(npm test)", ["shell(npm test)"]),
        ("Bash(echo \\(hi\\))", ["shell(echo (hi))"]),
        ("Read(~/.zshrc)", ["@read(~/.zshrc)", "@read(~/.zshrc/**)"]),
        ("Read(//data/**)", ["@read(/data/**)"]),
        ("Read(**)", ["@read(**)"]),
        ("Write", ["write_file"]),
        ("Edit", ["edit_file", "write_file", "apply_patch"]),
        ("Edit(/src/**)", [f"{tool}(/p/src/**)" for tool in ("edit_file", "write_file", "apply_patch")]),
        ("Glob(docs/**)", ["glob(docs/**)"]),
        ("WebFetch", ["web_fetch"]),
        ("WebFetch(domain:*.python.org)", ["web_fetch(domain:*.python.org)"]),
        ("mcp__github", ["mcp__github__*"]),
        ("mcp__github__get_me", ["mcp__github__get_me"]),
        ("Skill(pdf)", ["activate_skill(pdf)"]),
        ("Skill(pdf:*)", ["activate_skill(pdf*)"]),
        ("TodoWrite", ["todo_write"]),
        ("NotebookEdit", ["edit_file(**/*.ipynb)"]),
    ],
)
def test_an_allow_rule_means_the_same_here(rule: str, ours: list[str]) -> None:
    made = translated(rule, "allow", Path("/p"))
    assert (list(made.rules), made.why) == (ours, "")
    assert [read_rule(str(each), "allow").text for each in made.rules] == ours


@pytest.mark.parametrize(
    "rule",
    [
        *("Bash(git * main)", "Bash(ls*)", "Bash(* --version)", 'Bash(git commit -m "a:*)', "Bash(:*)", "Bash(a\nb)"),
        *(
            "Bash(npm test",
            "Bash()",
            "Edit(!src/**)",
            "Edit(src/*.{js,ts})",
            "Read(C:\\x)",
            "Read(../x)",
            "*",
            "mcp__*",
        ),
        *("WebFetch(https://x.org/a)", "WebFetch(domain:a*.org)", "Task(a{b})", "Nothing(x)", "bash(ls)", "()", ""),
    ],
)
def test_an_allow_rule_that_can_not_be_said_exactly_allows_nothing(rule: str) -> None:
    made = translated(rule, "allow", Path("/p"))
    assert made.rules == ()
    assert made.why


def test_a_host_is_allowed_without_those_below_it() -> None:
    made = translated("WebFetch(domain:example.org)", "allow", Path("/p")).rules
    rules = [read_rule(each, "allow") for each in made]

    def held(address: str) -> bool:
        return any(rule.covers(Subject("web_fetch", Effect.NETWORK, address)) for rule in rules)

    assert held("https://example.org")
    assert held("http://example.org/a/b?c=d")
    others = ("https://a.example.org/x", "https://example.org.evil.net/", "https://example.org@evil.net")
    assert not any(map(held, others))


@pytest.mark.parametrize(
    ("rule", "ours"),
    [
        ("Bash(rm -rf:*)", {"shell(rm -rf:*)"}),
        ("Bash(git push :* )", {"shell(git push:*)"}),
        ("Bash(curl:*", {"shell(curl:*)"}),
        ("Bash(*sudo*)", {"shell(*sudo*)"}),
        ("Bash(git * --force:*)", {"shell(git * --force*)"}),
        ("Bash", {"shell", "python", "run_skill_script"}),
        ("Read(.env)", {"@read(**/.env)", "@read(**/.env/**)"}),
        ("Read( ** /*token*)", {"@read(**/*token*)"}),
        ("Read(**/*.{pem,key})", {"@read(**/*.pem)", "@read(**/*.key)"}),
        ("Read($HOME/.ssh/**)", {"@read(~/.ssh/**)"}),
        ("Read(secrets\\**)", {"@read(secrets/**)"}),
        ("Read(/etc/**)", {"@read(/etc/**)", "@read(/p/etc/**)"}),
        ("Write(.env*)", {"@write(**/.env*)"}),
        ("Edit", {"edit_file", "write_file", "apply_patch"}),
        ("NotebookEdit", {"@write(**/*.ipynb)"}),
        ("WebFetch(https://evil.org/a)", {"web_fetch(domain:evil.org)"}),
        ("WebFetch(a b*c)", {"web_fetch"}),
        ("Task(Explore)", {"delegate_task(explore)"}),
        ("Agent(general-purpose)", {"delegate_task(general)"}),
        ("mcp__x:y__*", {"mcp__x*y__*"}),
        ("Web*", {"web_fetch", "web_search"}),
        ("*", {"*"}),
    ],
)
def test_a_strict_rule_is_never_narrower_than_it_was_meant(rule: str, ours: set[str]) -> None:
    made = {str(each) for each in translated(rule, "deny", Path("/p")).rules}
    assert made >= ours
    for each in made:
        read_rule(each, "deny")


def test_every_setting_of_the_schema_counts_or_is_named(home: Path, project: Path) -> None:
    write(project, dict.fromkeys(SCHEMA, "something") | {"hooks": {}, "permissions": {}, "env": {}})
    loaded = load(project)
    counted = {key.partition(".")[0] for file in loaded.foreign for key in file.honoured}
    quiet = {"permissions", "env"}
    assert set(SCHEMA) == counted | quiet | set(named(loaded))
    assert [why for why in named(loaded).values() if "no such setting" in why] == []
    assert loaded.warnings == ()


def test_settings_that_ba_knows_count_below_its_own(ba_home: Path, home: Path, project: Path) -> None:
    own = write(home, {"effortLevel": "high", "permissions": {"defaultMode": "acceptEdits"}, "model": "opus"})
    write(project, {"effortLevel": "low", "env": {"NODE_ENV": "test", "N": 3}}, "settings.local.json")
    loaded = load(project)
    assert (loaded.settings.effort, loaded.settings.permission_mode, loaded.wanted_model) == (
        *("low", "accept-edits", "opus"),
    )
    assert loaded.settings.environment.set == {"NODE_ENV": "test", "N": "3"}
    assert loaded.sources["permission_mode"] == f"{own}:4"
    (ba_home / "config.yaml").write_text("effort: max\npermission_mode: default\n")
    loaded = load(project)
    assert (loaded.settings.effort, loaded.settings.permission_mode) == ("max", "default")


def test_rules_know_their_line_also_with_comments_and_tabs(home: Path, project: Path) -> None:
    text = '{\n\t// what may run\n\t"permissions": {\n\t\t"allow": ["Bash(make)", /* and */\n\t\t\t"Nope",],\n\t},\n}\n'
    path = write(project, text)
    loaded = load(project)
    assert [(line.rule, line.source) for line in loaded.rules if line.layer == "claude"] == [
        ("shell(make)", f"{path}:4")
    ]
    ((file,), (wrong,)) = loaded.foreign, loaded.foreign[0].unsupported
    assert (wrong.key, wrong.line) == ("permissions.allow Nope", 5)
    assert file.summary == f"{path}: not supported: permissions.allow Nope"


BROKEN = [
    '{"permissions": {"deny": ["Bash(rm:*)"], "allow": ["Bash"]',
    '{"permissions": {"allow": ["Bash"] "deny": ["Bash(rm:*)"]}}',
    '{"permissions": {"deny": ["Bash(rm:*)"]}, "permissions": {"deny": [], "allow": []}}',
    '{"permissions": "none", "deny": ["Bash(rm:*)"]}',
    '[{"deny": ["Bash(rm:*)"]}]',
    "{'allow': ['Bash'], \"deny\": [\"Bash(rm:*)\"",
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_still_denies_and_allows_nothing(home: Path, project: Path, text: str) -> None:
    for trusted in (True, False):
        path = write(project, text)
        loaded = load(project, trusted=trusted)
        assert rules(loaded) == [("deny", "shell(rm:*)")]
        # Nobody's run ends for it, and the user is told where the file is broken.
        loaded.check()
        assert all(str(problem).startswith(str(path)) for problem in loaded.warnings)


def test_a_file_that_is_not_json_is_named_with_its_line(home: Path, project: Path) -> None:
    path = write(project, '{\n"model": "opus",\n"env" {}\n}')
    (problem,) = load(project).warnings
    assert str(problem).startswith(f"{path}:3: can't be read as JSON")


def test_a_file_in_utf_16_counts_too(home: Path, project: Path) -> None:
    path = write(project, {})
    path.write_bytes('{"permissions": {"deny": ["Bash(rm:*)"]}}'.encode("utf-16"))
    assert rules(load(project)) == [("deny", "shell(rm:*)")]
    path.write_bytes('{"permissions": {"deny": ["Bash(rm:*)"]}'.encode("utf-16"))
    assert rules(load(project)) == [("deny", "shell(rm:*)")]


def test_an_untrusted_folder_loosens_and_chooses_nothing(home: Path, project: Path) -> None:
    write(
        project,
        {
            "permissions": {"allow": ["Bash"], "deny": ["Read(.env)"], "defaultMode": "plan"},
            "env": {"A": "b"},
            "model": "opus",
            "statusLine": {},
        },
    )
    loaded = load(project, trusted=False)
    assert rules(loaded) == [("deny", "@read(**/.env)"), ("deny", "@read(**/.env/**)")]
    assert (loaded.settings.permission_mode, loaded.settings.environment.set, loaded.wanted_model) == (
        *("default", {}, ""),
    )
    assert named(loaded) == {}


@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits", "auto", "dontAsk"])
def test_a_project_never_asks_for_a_mode_that_asks_less(home: Path, project: Path, mode: str) -> None:
    write(project, {"permissions": {"defaultMode": mode}})
    loaded = load(project)
    assert loaded.settings.permission_mode == "default"
    assert "permissions.defaultMode" in named(loaded)


def test_nor_does_the_persons_own_file_choose_bypass(home: Path, project: Path) -> None:
    write(home, {"permissions": {"defaultMode": "bypassPermissions"}})
    loaded = load(project)
    assert loaded.settings.permission_mode == "default"
    assert "--permission-mode bypass" in named(loaded)["permissions.defaultMode"]


def test_bypass_can_be_disabled(home: Path, project: Path) -> None:
    path = write(home, {"permissions": {"disableBypassPermissionsMode": "disable"}})
    with pytest.raises(UsageError, match=f"disabled by {path}"):
        load(project, permission_mode="bypass")


def test_only_the_persons_own_file_opens_folders(home: Path, project: Path) -> None:
    write(project, {"permissions": {"additionalDirectories": ["/", "../other"]}, "sandbox": {"enabled": False}})
    loaded = load(project)
    assert loaded.settings.add_dirs == ()
    assert loaded.settings.sandbox == "auto"
    assert set(named(loaded)) == {"permissions.additionalDirectories", "sandbox"}
    write(home, {"permissions": {"additionalDirectories": ["~/notes", "relative"]}})
    loaded = load(project)
    assert loaded.settings.add_dirs == (home / "notes",)


def test_a_project_allows_no_files_outside_its_folder(home: Path, project: Path) -> None:
    given = {"permissions": {"allow": ["Edit(//etc/**)", "Read(~/.zshrc)", "Edit(/src/**)", "Read(**)"]}}
    write(project, given)
    loaded = load(project)
    tools = ("edit_file", "write_file", "apply_patch")
    assert rules(loaded) == [*(("allow", f"{tool}({project}/src/**)") for tool in tools), ("allow", "@read(**)")]
    assert set(named(loaded)) == {"permissions.allow Edit(//etc/**)", "permissions.allow Read(~/.zshrc)"}
    write(home, given)
    (project / ".claude" / "settings.json").unlink()
    assert ("allow", "@read(~/.zshrc)") in rules(load(project))


def test_plugins_are_turned_off_in_the_persons_own_file_alone(home: Path, project: Path) -> None:
    write(home, {"enabledPlugins": {"a@b": True}})
    assert "their agents, hooks and MCP servers do not" in named(load(project))["enabledPlugins"]
    write(project, {"enabledPlugins": {"a@b": False}})
    assert "only ~/.claude/settings.json" in named(load(project))["enabledPlugins"]


DANGEROUS = [
    *("LD_PRELOAD", "PATH", "NODE_OPTIONS", "BASH_ENV", "GIT_SSH_COMMAND", "PYTHONPATH", "PERL5LIB", "HTTPS_PROXY"),
    *("HOME", "RUSTFLAGS"),
]
SECRETS = ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "ANTHROPIC_AUTH_TOKEN"]


def test_a_project_sets_no_variable_that_changes_how_programs_start(home: Path, project: Path) -> None:
    given = dict.fromkeys([*DANGEROUS, *SECRETS, "CLAUDE_CODE_X", "DISABLE_TELEMETRY"], "sesame") | {"PORT": "80"}
    path = write(project, {"env": given})
    loaded = load(project)
    assert loaded.settings.environment.set == {"PORT": "80"}
    assert set(named(loaded)) == {f"env.{name}" for name in given if name != "PORT"}
    assert not any("sesame" in line for line in loaded.foreign[0].lines)
    path.unlink()
    write(home, {"env": given})
    kept = set(load(project).settings.environment.set)
    assert kept == {*DANGEROUS, "PORT"} - {"BASH_ENV"}


def test_a_notice_is_shown_once_until_the_file_changes(home: Path, project: Path) -> None:
    path = write(project, {"statusLine": {"type": "command", "command": "x"}, "outputStyle": "a"})

    def told() -> list[str]:
        return [notice.text for notice in foreign_notices(load(project).foreign, places())]

    assert told() == [f"{path}: not supported: statusLine, outputStyle."]
    assert told() == []
    write(project, {"statusLine": {"type": "command", "command": "x"}})
    assert told() == [f"{path}: not supported: statusLine."]


def test_a_key_in_a_rule_is_not_shown(home: Path, project: Path) -> None:
    path = write(project, {"permissions": {"allow": ['Bash(curl -H "Bearer sesame" * x)', "Bash(A=sesame * x)"]}})
    (file,) = load(project).foreign
    assert file.summary == f"{path}: not supported: permissions.allow Bash(curl -H …, permissions.allow Bash(A…"
    assert not any("sesame" in line for line in file.lines)


VALUES: list[Any] = [None, 3, "x", [], [1], {}, {"a": [None]}, True, "Bash(x)", ["Bash(x)", 3, None]]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", ["permissions", "env", "hooks", "model", "effortLevel", "disableAllHooks", "deny"])
def test_any_value_of_any_key_is_survived(home: Path, project: Path, key: str, value: Any) -> None:
    write(project, {key: value, "statusLine": 1})
    assert "statusLine" in named(load(project))
    write(
        project, {"permissions": dict.fromkeys(["allow", "deny", "ask", "defaultMode", "odd"], value), "statusLine": 1}
    )
    assert "statusLine" in named(load(project))
    rules(load(project))
