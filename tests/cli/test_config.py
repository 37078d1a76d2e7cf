"""``ba config``: every value with its source, mistakes with their place, and exit codes that scripts can use."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from ba_tui.cli.main import run
from ba_tui.resources import bundled
from tests.program import Program


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".ba").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_show_prints_each_value_and_its_source(
    ba_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (ba_home / "config.yaml").write_text("model: openai/x\n")
    monkeypatch.setenv("BA_THEME", "nord")
    assert run(["config", "show"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["model"].endswith(f"openai/x  ({ba_home / 'config.yaml'}:1)")
    assert rows["theme"].endswith("nord  (BA_THEME)")
    assert rows["max_loops"].endswith("100  (bundled)")
    assert rows["effort"].endswith("—  (default)")


def test_show_as_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["max_loops"] == {"value": 100, "source": "bundled"}
    assert shown["providers.anthropic.kind"]["value"] == "anthropic"


def test_show_keeps_passwords_and_escapes_to_itself(
    ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ba_home / "config.yaml").write_text("providers: {mine: {base_url: 'http://ann:hunter2@h/v1'}}\n")
    (project / ".ba" / "config.yaml").write_text('model: "x\\e]0;owned\\a"\n')
    assert run(["config", "show"]) == 0
    out = capsys.readouterr().out
    assert "hunter2" not in out
    assert "\x1b" not in out
    assert "http://ann:…@h/v1" in out


def test_another_folder_can_be_asked_about(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".ba" / "config.yaml").write_text("theme: nord\n")
    assert run(["config", "show", "--cwd", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["theme"]["value"] == "auto"
    assert run(["config", "show", "--cwd", str(tmp_path / "none")]) == 1
    assert "no folder" in capsys.readouterr().err


def test_path_prints_one_path_for_scripts(ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{ba_home / 'config.yaml'}\n"
    assert run(["config", "path", "--all"]) == 0
    out = capsys.readouterr().out
    assert f"{ba_home / 'config.yaml'}  (yours, not there)" in out
    assert str(project / ".ba" / "config.local.yaml") in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: [a\n", "not valid YAML"),
        ("max_loops: many\n", "max_loops: expected a whole number, got 'many'"),
        ("thme: x\n", "did you mean theme?"),
        ("permissions: {allow: ['shell(git * x)']}\n", "may only be at the end"),
    ],
)
def test_validate_names_what_is_wrong(ba_home: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    assert run(["config", "validate"]) == 0
    assert capsys.readouterr().out.startswith("Valid: ")
    (ba_home / "config.yaml").write_text(text)
    assert run(["config", "validate"]) == 1
    out = capsys.readouterr().out
    assert f"{ba_home / 'config.yaml'}:" in out
    assert said in out
    assert (ba_home / "config.yaml").read_text() == text


def test_validate_names_a_domain_that_no_start_takes(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("commands: {domains: ['a b']}\n")
    assert run(["config", "validate"]) == 1
    assert capsys.readouterr().out.startswith("commands.domains: permission rule 'shell_network(domain:a b)': ")


def test_what_a_project_may_not_set_is_told_but_no_error(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".ba" / "config.yaml").write_text("providers: {anthropic: {base_url: 'http://evil.example'}}\n")
    assert run(["config", "validate"]) == 0
    assert "ignored: this folder is not trusted" in capsys.readouterr().out


def test_set_changes_one_key(
    ba_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (ba_home / "config.yaml").write_text("# mine\ntheme: nord\n")
    assert run(["config", "set", "max_loops", "7"]) == 0
    assert (ba_home / "config.yaml").read_text() == "# mine\ntheme: nord\nmax_loops: 7\n"
    monkeypatch.setenv("BA_THEME", "light")
    assert run(["config", "set", "theme", "dark"]) == 0
    assert "no effect here: BA_THEME" in capsys.readouterr().err
    assert run(["config", "set", "thme", "dark"]) == 1
    assert "did you mean theme?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("permissions.allow", "shell(ls", "permission rule 'shell(ls'"),
        ("permissions.ask", "[now, {rule: 'shell('}]", "permission rule 'shell('"),
        ("theme", "lightt", "There is no theme 'lightt'; did you mean 'light'?"),
    ],
)
def test_set_refuses_what_would_stop_the_next_start(
    ba_home: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, said: str
) -> None:
    assert run(["config", "set", key, value]) == 1
    assert said in capsys.readouterr().err
    assert not (ba_home / "config.yaml").exists()


def test_set_refuses_a_broken_file(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("theme: [\n")
    assert run(["config", "set", "theme", "dark"]) == 1
    assert f"{ba_home / 'config.yaml'}:2" in capsys.readouterr().err
    assert (ba_home / "config.yaml").read_text() == "theme: [\n"


def test_a_home_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = Program(tmp_path, tmp_path, {"BA_HOME": str(tmp_path / "file" / "home")}).here("config", "set", "theme", "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "can't be used" in done.stderr


def test_edit_opens_the_editor_and_checks_afterwards(
    ba_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; open(sys.argv[-1], 'a').write('max_loops: many\\n')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    assert run(["config", "edit"]) == 1
    assert "max_loops: expected a whole number" in capsys.readouterr().err
    assert (ba_home / "config.yaml").read_text().startswith("# Your settings")
    monkeypatch.setenv("EDITOR", "no-such-editor-anywhere")
    assert run(["config", "edit"]) == 1
    assert "can't be started" in capsys.readouterr().err


def test_edit_without_editor_and_terminal_says_where_the_file_is(
    ba_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run(["config", "edit"]) == 1
    assert str(ba_home / "config.yaml") in capsys.readouterr().err
    assert list(ba_home.iterdir()) == []


def test_the_schema_fits_what_is_bundled(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load((bundled("config") / "default.yaml").read_text()), schema)
    undescribed = [name for name, field in schema["properties"].items() if "description" not in field]
    assert undescribed == []


def test_settings_of_claude_code_are_listed_with_what_has_no_effect(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    (home / ".claude").mkdir(parents=True)
    folder.mkdir()
    file = home / ".claude" / "settings.json"
    file.write_text('{\n"effortLevel": "high",\n"statusLine": {}\n}')
    ba = Program(folder, home)
    line = f"{file}:3: statusLine: not supported: ba has no status line commands\n"
    done = ba.here("config", "validate")
    assert (done.returncode, done.stdout.startswith(line)) == (0, True)
    assert ba.here("config", "show").stderr == f"ba: {line}"
    assert ba.json("config", "show", "--json")["effort"] == {"value": "high", "source": f"{file}:2"}
    assert f"{file}  (Claude Code)\n" in ba.here("config", "path", "--all").stdout
    (found,) = (each for each in ba.json("doctor", "--json")["findings"] if each["name"] == "Claude Code")
    assert (found["state"], found["text"], found["detail"]) == ("ok", f"{file}: in effect: effortLevel", line.strip())
