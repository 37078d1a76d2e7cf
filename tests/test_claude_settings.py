"""A project's .claude/settings.json in a conversation: what it denies, what it allows, and what it never does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Asked, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import Trust, trust_folder
from ba_tui.resources import places
from ba_tui.settings.hooks import found_hooks

SETTINGS: dict[str, Any] = {
    "permissions": {"allow": ["Bash(bash make.sh)"], "deny": ["Bash(touch never:*)"], "ask": ["Bash(pwd)"]},
    "env": {"COLOUR": "green", "API_TOKEN": "sesame"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    work = tmp_path / "work"
    (work / ".claude").mkdir(parents=True)
    (work / "make.sh").write_text("echo $COLOUR > made\n")
    (work / ".claude" / "settings.json").write_text(f"// ours\n{json.dumps(SETTINGS, indent=2)}")
    return work


async def ran(folder: Path, command: str, *, strict: bool = False) -> tuple[list[str], str]:
    """What was asked about a command, which is denied then, and what the model was given."""
    return await called(folder, "shell", {"command": command}, strict=strict)


async def called(folder: Path, tool: str, args: Any, *, strict: bool = False) -> tuple[list[str], str]:
    """The same for a call of any tool."""
    steps = [{"calls": [{"tool": tool, "args": args}]}, {"say": "Done."}]
    script = folder.parent / "script.yaml"
    script.write_text(json.dumps({"steps": steps}))
    talk = connect({"model": f"scripted:{script}"}, folder, strict=strict).library.create()
    turn = talk.say("go")
    asked, told = list[str](), list[str]()
    async for event in turn:
        if isinstance(event, Asked):
            asked.append(event.question.reason)
            assert turn.answer(event.ask_id, Reply("deny"))
        if isinstance(event, ToolFinished):
            told.append(event.result.text)
    await talk.close()
    return asked, "".join(told)


async def test_in_a_trusted_folder_its_rules_decide(folder: Path) -> None:
    trust_folder(folder)
    asked, told = await ran(folder, "touch never.txt && touch never")
    assert (asked, (folder / "never").exists()) == ([], False)
    assert "Denied by the rule shell(touch never:*)" in told
    assert str(folder / ".claude" / "settings.json") in told
    asked, _ = await ran(folder, "bash make.sh")
    assert (asked, (folder / "made").read_text()) == ([], "green\n")
    asked, _ = await ran(folder, "pwd")
    assert len(asked) == 1


async def test_where_nobody_trusts_the_folder_they_allow_nothing(folder: Path) -> None:
    await ran(folder, "bash make.sh", strict=True)
    assert not (folder / "made").exists()
    _, told = await ran(folder, "touch never", strict=True)
    assert "Denied by the rule" in told


async def test_a_file_that_may_not_be_read_is_not_found_either(folder: Path) -> None:
    (folder / "internal").mkdir()
    (folder / "internal" / "plan.md").write_text("needle: the plan\n")
    (folder / "open.md").write_text("needle: in the open\n")
    (folder / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Read(./internal/**)"]}}')
    trust_folder(folder)
    _, told = await called(folder, "read_file", {"path": "internal/plan.md"})
    assert "Denied by the rule @read(internal/**)" in told
    _, told = await called(folder, "grep", {"pattern": "needle"})
    assert ("in the open" in told, "the plan" in told) == (True, False)
    asked, told = await ran(folder, "cat internal/plan.md")
    assert (asked, "the plan" in told) == ([], False)


async def test_ba_s_own_rules_deny_what_they_allow(folder: Path, ba_home: Path) -> None:
    (ba_home / "config.yaml").write_text('permissions: {deny: ["shell(bash:*)"]}\n')
    trust_folder(folder)
    _, told = await ran(folder, "bash make.sh")
    assert "Denied by the rule shell(bash:*)" in told


def test_the_question_about_trust_lists_what_counts_but_no_keys(folder: Path) -> None:
    seen = Trust(places()).look(folder)
    assert "sesame" not in str(seen)
    held = {part.kind: part.names for part in seen.holds}
    assert held == {
        "settings": ("allow Bash(bash make.sh)", "deny Bash(touch never:*)", "ask Bash(pwd)", "env COLOUR=green")
    }


@pytest.mark.parametrize("change", [{"allow": ["Bash"]}, {"deny": []}, {"defaultMode": "plan"}])
def test_a_change_of_its_rules_asks_again(folder: Path, change: dict[str, Any]) -> None:
    trust_folder(folder)
    file = folder / ".claude" / "settings.json"
    file.write_text(json.dumps({**SETTINGS, "statusLine": {"type": "command"}}))
    assert Trust(places()).trusted(folder)
    file.write_text(json.dumps({**SETTINGS, "permissions": {**SETTINGS["permissions"], **change}}))
    assert not Trust(places()).trusted(folder)


def hook(command: str) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}


def test_the_persons_own_hooks_run_in_every_folder(folder: Path) -> None:
    own = folder.parent / "home" / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text(f"// mine\n{json.dumps(hook('mine'))}")
    local = folder / ".claude" / "settings.local.json"
    local.write_text(json.dumps(hook("theirs")))

    def found(*, trusted: bool) -> list[str]:
        return [each.command for each in found_hooks((), folder, lambda _: trusted)[0]]

    assert (found(trusted=False), found(trusted=True)) == (["mine"], ["mine", "theirs"])
    # A project turns off its own hooks, the user all of them.
    local.write_text(json.dumps({**hook("theirs"), "disableAllHooks": True}))
    assert found(trusted=True) == ["mine"]
    own.write_text(json.dumps({**hook("mine"), "disableAllHooks": True}))
    local.write_text(json.dumps(hook("theirs")))
    assert found(trusted=True) == []


def test_a_script_that_a_commented_file_names_belongs_to_what_is_trusted(folder: Path) -> None:
    script = folder / "guard.sh"
    script.write_text("exit 0\n")
    (folder / ".claude" / "settings.json").write_text(f"/* ours */ {json.dumps(hook('bash guard.sh'))}")
    trust_folder(folder)
    assert Trust(places()).trusted(folder)
    script.write_text("exit 1 # other\n")
    assert not Trust(places()).trusted(folder)


def test_a_wanted_model_counts_only_where_it_can_be_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_folder(folder)
    (folder / ".claude" / "settings.local.json").write_text('{"model": "haiku"}')
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert connect({}, folder).library.create().model.startswith("openai/")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert connect({}, folder).library.create().model == "anthropic/claude-haiku-5-5"
    assert connect({"model": "openai/gpt-6"}, folder).library.create().model == "openai/gpt-6"
