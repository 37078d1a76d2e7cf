"""``ba migrate``: what it finds of other assistants, what it writes, and what it never writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.program import Program

CODEX = """\
model = "gpt-6"
model_provider = "corp"
approval_policy = "never"
model_reasoning_effort = "high"
notify = ["x"]
invented = 1
[model_providers.corp]
base_url = "https://llm.example.org/v1"
env_key = "CORP_KEY"
http_headers = { Authorization = "sesame" }
[sandbox_workspace_write]
network_access = true
writable_roots = ["/data"]
[shell_environment_policy.set]
CI = "1"
DATABASE_URL = "postgres://me:sesame-opens-it@db.example.org/all"
GITHUB_TOKEN = "sesame"
[mcp_servers.docs]
command = "npx"
env = { KEY = "sesame" }
[profiles.fast]
model = "small"
"""
RULES = """\
prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt")
prefix_rule(pattern=["rm"], decision="forbidden")
prefix_rule(pattern=["ls"])
other(1)
"""
OPENCODE = """\
{ // mine
  "model": "local/glm",
  "provider": {"local": {"options": {"baseURL": "http://10.0.0.1:8000/v1", "apiKey": "sesame"}}},
  "permission": {"bash": {"*": "ask", "git status *": "allow", "ls*": "allow", "sudo*": "deny"}, "edit": "deny"},
  "keybinds": {},
}
"""
WRITTEN: dict[str, Any] = {
    "providers": {
        "corp": {"kind": "openai", "base_url": "https://llm.example.org/v1", "api_key_env": "CORP_KEY"},
        "local": {"kind": "openai", "base_url": "http://10.0.0.1:8000/v1"},
    },
    "model": "corp/gpt-6",
    "permission_mode": "auto",
    "effort": "high",
    "commands": {"network": True, "write": ["/data"]},
    "environment": {"set": {"CI": "1"}},
    "permissions": {
        "ask": ["shell(git push:*)", "shell(git fetch:*)"],
        "deny": ["shell(rm:*)", "shell(sudo*)", "edit_file", "write_file", "apply_patch"],
        "allow": ["shell(ls:*)", "shell(git status:*)"],
    },
}


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    put(home / ".codex" / "config.toml", CODEX)
    put(home / ".codex" / "rules" / "default.rules", RULES)
    put(home / ".codex" / "auth.json", '{"OPENAI_API_KEY": "sesame"}')
    put(home / ".codex" / "sessions" / "2026" / "01" / "01" / "rollout-1.jsonl")
    put(home / ".config" / "opencode" / "opencode.json", OPENCODE)
    settings = {
        "permissions": {"allow": ["Bash(make)", "Bash(git * x)"]},
        "env": {"A_TOKEN": "sesame"},
        "statusLine": {},
    }
    put(home / ".claude" / "settings.json", json.dumps(settings, indent=1))
    put(home / ".claude" / "skills" / "a" / "SKILL.md")
    put(home / ".claude.json", '{"mcpServers": {"github": {}}}')
    return Program(folder, home, {"CODEX_HOME": "", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""})


def written(ba: Program) -> Any:
    import yaml

    file = ba.home / "ba" / "config.yaml"
    return yaml.safe_load(file.read_text()) if file.exists() else None


def test_it_shows_everything_and_writes_nothing_by_itself(ba: Program) -> None:
    done = ba.here("migrate", "--dry-run")
    assert done.returncode == 0
    assert "sesame" not in done.stdout + done.stderr
    for said in (
        *("already  permissions.allow", "permissions.allow Bash(git * x) (line 5)", "env.A_TOKEN", "statusLine"),
        *("1 in ~/.claude/skills: ba reads them", "MCP servers: github", "model: corp/gpt-6", "notify", "invented"),
        *(
            "MCP server docs",
            "profiles: fast",
            "by hand  sign-in",
            "ba sessions import --own-folders ~/.codex/sessions",
            "keybinds",
        ),
        *("variable GITHUB_TOKEN", "variable DATABASE_URL", "other(1) (line 4)", "permission.bash ls* (line 4)"),
    ):
        assert said in done.stdout, said
    assert written(ba) is None
    asked = ba.here("migrate")
    assert (asked.returncode, written(ba)) == (1, None)
    assert "No terminal to ask on" in asked.stderr


def test_after_a_yes_it_writes_once_and_keeps_what_stands(ba: Program) -> None:
    done = ba.here("migrate", "--yes")
    assert done.returncode == 0, done.stderr
    assert written(ba) == WRITTEN
    assert ba.here("config", "validate").returncode == 0
    again = ba.here("migrate", "--yes")
    assert (again.returncode, written(ba)) == (0, WRITTEN)
    assert again.stdout.endswith(f"Nothing to write to {ba.home / 'ba' / 'config.yaml'}.\n")


def test_what_the_person_set_stays_with_its_comments_and_a_copy(ba: Program) -> None:
    file = put(
        ba.home / "ba" / "config.yaml", "model: openai/mine  # best\npermissions:\n  deny:\n    - shell(rm:*)  # no\n"
    )
    before = file.read_text()
    done = ba.here("migrate", "codex", "--yes")
    assert done.returncode == 0, done.stderr
    assert "your config.yaml sets model otherwise, and that stays" in done.stdout
    assert file.read_text().startswith(before.partition("\n")[0])
    assert "- shell(rm:*)  # no" in file.read_text()
    assert file.with_name("config.yaml.before-migrate").read_text() == before


def test_as_json_it_is_for_scripts(ba: Program) -> None:
    found = ba.json("migrate", "opencode", "--json")
    assert set(found) == {"found", "changes", "problems", "written"}
    assert (found["written"], found["problems"], list(found["found"])) == (False, [], ["opencode"])
    assert {"key": "model", "value": "local/glm", "adds": False} in found["changes"]
    assert {each["state"] for each in found["found"]["opencode"]} == {"already", "write", "by hand", "no"}
    assert ba.json("migrate", "opencode", "--json", "--yes")["written"]
    assert written(ba)["model"] == "local/glm"


def test_broken_files_are_named_with_their_line(ba: Program) -> None:
    codex = put(ba.home / ".codex" / "config.toml", 'model = "a"\nmodel = = 3\n')
    opencode = put(ba.home / ".config" / "opencode" / "opencode.json", '{\n"model" 3\n}')
    claude = put(ba.home / ".claude" / "settings.json", '{\n\n"model" 3\n}')
    rules = put(ba.home / ".codex" / "rules" / "default.rules", "\nprefix_rule(\n")
    done = ba.here("migrate", "--dry-run")
    assert done.returncode == 1
    for file, line in ((codex, 2), (opencode, 2), (claude, 3), (rules, 2)):
        assert any(text.startswith(f"ba: {file}:{line}: ") for text in done.stderr.splitlines()), done.stderr


def test_a_broken_config_of_ba_s_own_is_not_written_to(ba: Program) -> None:
    put(ba.home / "ba" / "config.yaml", "a: [\n")
    done = ba.here("migrate", "--yes")
    assert (done.returncode, "ba config edit" in done.stderr) == (1, True)


def test_nothing_found_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    done = Program(tmp_path, tmp_path / "home").here("migrate")
    assert (done.returncode, done.stdout) == (0, "Nothing of Claude Code, Codex, OpenCode was found.\n")


def test_a_wider_sandbox_or_no_questions_at_all_are_never_taken_over(ba: Program) -> None:
    put(ba.home / ".codex" / "config.toml", 'sandbox_mode = "danger-full-access"\napproval_policy = "never"\n')
    assert ba.json("migrate", "codex", "--json")["changes"][:1] == [
        {"key": "permissions.ask", "value": "shell(git push:*)", "adds": True}
    ]


def test_agents_prompts_and_plugins_are_read_where_they_are(ba: Program) -> None:
    for name in (".claude/agents/a.md", ".codex/agents/b.toml", ".codex/prompts/c.md", ".config/opencode/agent/d.md"):
        put(ba.home / name)
    plugin = ba.home / "bought" / "tidy"
    for name in ("commands/up.md", "skills/sweep/SKILL.md", "agents/maid.md"):
        put(plugin / name)
    listed = {"plugins": {"tidy@market": [{"scope": "user", "installPath": str(plugin)}]}}
    put(ba.home / ".claude" / "plugins" / "installed_plugins.json", json.dumps(listed))
    put(ba.folder / ".claude" / "agents" / "e.md")
    (ba.folder / ".git").mkdir()
    found = ba.json("migrate", "--json")["found"]
    told = {(each["what"], each["state"]): each["text"] for tool in found.values() for each in tool}
    agents = [each["text"] for tool in found.values() for each in tool if each["what"] == "agents"]
    assert [text.partition(":")[0] for text in agents] == [
        "1 in ~/.claude/agents",
        f"1 in {ba.folder}/.claude/agents",
        "1 in ~/.codex/agents",
        "1 in ~/.config/opencode/agent",
    ]
    assert "ba reads them" in agents[0]
    assert "ba trust" in agents[1]
    assert told["commands", "already"] == "1 in ~/.codex/prompts: ba reads them"
    assert told["commands of tidy", "already"] == "1 in ~/bought/tidy/commands: ba reads them"
    assert told["skills of tidy", "already"] == "1 in ~/bought/tidy/skills: ba reads them"
    assert "agents, hooks and MCP servers do not" in told["plugin tidy", "no"]
