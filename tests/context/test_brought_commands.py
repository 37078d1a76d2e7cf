"""Commands that people bring along: prompts of Codex, and what plugins in Claude Code's layout hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, Notice, TurnEnded
from ba_tui.core.questions import Reply
from tests.context.test_own_commands import Work, said, sent

CODEX = """\
---
description: Draft a pull request
argument-hint: FILE=path FOCUS=words
---
Look at $FILE for $FOCUS. It costs $$5, not $1,000. !`touch ran`
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return home


@pytest.fixture
def work(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work(tmp_path / "work")
    monkeypatch.chdir(made.folder)
    return made


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(talk: Conversation) -> list[str]:
    assert talk.inventory.commands is not None
    return [line.name for line in talk.inventory.commands.lines() if line.source != "bundled"]


def ended(events: list[Event]) -> TurnEnded:
    return next(event for event in events if isinstance(event, TurnEnded))


async def test_a_prompt_of_codex_gets_its_named_values_and_runs_nothing(work: Work, home: Path) -> None:
    write(home / ".codex/prompts/draft.md", CODEX)
    write(home / ".codex/prompts/deeper/none.md", "Not read.")
    write(home / ".codex/prompts/words.md", "First $1, ninth $9, all: $ARGUMENTS.")
    talk = work.open()
    assert names(talk) == ["draft", "words"]
    drafted = sent(await said(talk, '/draft FOCUS="loose ends" FILE=src/a.py'))
    assert "Look at src/a.py for loose ends. It costs $5, not $1,000. !`touch ran`" in drafted
    assert not (work.folder / "ran").exists()
    words = sent(await said(talk, "/prompts:words one 'two three'"))
    assert "First one, ninth , all: one two three." in words
    await talk.close()


async def test_a_missing_value_is_named_and_nothing_is_sent(work: Work, home: Path) -> None:
    write(home / ".codex/prompts/draft.md", CODEX)
    talk = work.open()
    events = await said(talk, "/draft FILE=a.py")
    error = ended(events).error
    assert error
    assert error.kind == "prompt_refused"
    assert error.message == "/draft was not sent. It needs FOCUS."
    await talk.close()


async def test_commands_and_skills_of_plugins_join_under_their_names(work: Work, home: Path) -> None:
    installed = home / ".claude/plugins/cache/market/tidy/1.0.0"
    write(installed / ".claude-plugin/plugin.json", json.dumps({"name": "tidy", "commands": "./more"}))
    tools = 'allowed-tools: ["Bash(${CLAUDE_PLUGIN_ROOT}/scripts/count.sh:*)", TaskCreate]\n'
    write(installed / "commands/up.md", f"---\n{tools}---\nCounted: !`sh ${{CLAUDE_PLUGIN_ROOT}}/scripts/count.sh $1`")
    write(installed / "commands/deep/down.md", "Go down.")
    write(installed / "more/extra.md", "More.")
    write(installed / "scripts/count.sh", 'echo "$1 things"')
    write(
        installed / "skills/sweep/SKILL.md", "---\nname: sweep\ndescription: Sweeps.\n---\nSweep ${CLAUDE_PLUGIN_ROOT}."
    )
    off = home / ".claude/plugins/cache/market/off/1.0.0"
    write(off / "commands/never.md", "Never.")
    entry = {"scope": "user", "installPath": str(installed), "version": "1.0.0"}
    listed = {
        "tidy@market": [entry],
        "off@market": [{**entry, "installPath": str(off)}],
        "gone@market": {**entry, "installPath": "/gone"},
    }
    write(home / ".claude/plugins/installed_plugins.json", json.dumps({"version": 2, "plugins": listed}))
    write(home / ".claude/settings.json", json.dumps({"enabledPlugins": {"tidy@market": True, "off@market": False}}))
    write(work.folder / ".claude/plugins/team/commands/stand.md", "Stand up.")
    talk = work.open()
    assert names(talk) == ["team:stand", "tidy:deep:down", "tidy:extra", "tidy:up"]
    assert talk.inventory.skills is not None
    assert [line.id for line in talk.inventory.skills.lines() if line.source != "bundled"] == ["sweep"]
    asked: list[str] = []

    def yes(event: object) -> Reply:
        asked.append(event.question.text)  # type: ignore[attr-defined]
        return Reply("once")

    events = await said(talk, "/tidy:up 3", yes)
    assert asked[0] == "Let /tidy:up use its tools without asking?"
    assert "Counted: 3 things" in sent(events)
    assert any(
        "names, these are not here" in event.text and "TaskCreate" in event.text
        for event in events
        if isinstance(event, Notice)
    )
    assert "Stand up." in sent(await said(talk, "/stand"))
    await talk.close()


async def test_plugins_of_a_project_wait_for_trust(work: Work) -> None:
    write(work.folder / ".claude/plugins/team/.claude-plugin/plugin.json", '{"name": "crew"}')
    write(work.folder / ".claude/plugins/team/commands/stand.md", "Stand up.")
    closed = connect({"model": f"scripted:{work.folder}/a.yaml"}, work.folder).library.create()
    assert names(closed) == []
    await closed.close()
    talk = work.open()
    assert names(talk) == ["crew:stand"]
    await talk.close()


async def test_fields_decide_who_starts_and_what_has_no_effect_is_named(work: Work) -> None:
    work.command("mine", "---\ndisable-model-invocation: true\nallowed_tools: Nobody\nagent: plan\n---\nGo.")
    work.command("theirs", "---\nuser-invocable: false\n---\nGo.")
    skill = "---\nname: {name}\ndescription: Does it.\n{field}\n---\nDo it."
    for name, field in (("person", "disable-model-invocation: true"), ("model", "user-invocable: false")):
        write(work.folder / f".claude/skills/{name}/SKILL.md", skill.format(name=name, field=field))
    talk = work.open()
    events = await said(talk, "/mine")
    text = "\n".join(event.text for event in events if isinstance(event, Notice))
    assert "these fields of its file have no effect in ba: agent." in text
    assert "Of the tools that /mine names, these are not here or can't be allowed beforehand: Nobody." in text
    commands, skills = talk.inventory.commands, talk.inventory.skills
    assert commands is not None
    assert skills is not None
    with pytest.raises(UsageError, match="only models may start it"):
        commands.check("/theirs")
    with pytest.raises(UsageError, match="started by models only"):
        skills.activate("model")
    skills.activate("person")
    assert talk.inventory.mentions is not None
    offered = [each.label for each in await talk.inventory.mentions.search("skill:")]
    assert "person" in offered
    assert "model" not in offered
    await talk.close()
