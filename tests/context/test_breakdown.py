"""What fills the window, share by share: each thing counts once, and all of it adds up to the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.context.breakdown import RequestPrefix, context_parts
from ba_tui.context.instructions import Instructions, instruction_note
from ba_tui.core.events import Event, MessageDone, SkillsChanged, Steered, ToolFinished, ToolStarted, TurnStarted
from ba_tui.core.messages import Image, Message, Text, Thinking, ToolUse, reminder, user
from ba_tui.core.ports.context import ContextItem, ContextPart
from ba_tui.core.ports.contributions import MarkedShare
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import ActiveSkill, ToolResult, failure
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.providers.token_calibration import TokenCalibration, Tokens
from ba_tui.providers.token_counter import encoders_of
from ba_tui.resources import places
from ba_tui.skills.activation import MARK
from ba_tui.skills.active import active_skills

MODEL = ModelInfo("openai/gpt-5.4", "openai", "gpt-5.4", window=100_000, known=True)
RULES = Instructions("AGENTS.md", "Use tabs. " * 40)
SKILL = '<skill id="charts" activation="a1" size="2000">\n' + "Draw bars. " * 200 + "\n</skill>"


async def nothing(args: object, call: Call) -> ToolResult:
    return ToolResult("ok")


TOOLS = [Tool(name, f"The tool {name}.\n\nMore.", {"type": "object"}, nothing) for name in ("grep", "read_file")]
SKILLS = MarkedShare("Skills", MARK, "Skills:\n- charts", active_skills)
LOADED = RequestPrefix("You are ba.", "built in", TOOLS, 3, (RULES,), (SKILLS,))


def called(id: str, name: str, result: ToolResult, **given: object) -> list[Event]:
    call = ToolUse(id, name, given)
    answer = Message("assistant", (Thinking("hm"), Text("I look."), call), origin="assistant")
    return [MessageDone(answer), ToolStarted(call), ToolFinished(id, result)]


def story() -> list[Event]:
    told = instruction_note((RULES,), ())
    assert told is not None
    picture = Message("user", (Text("What is [wrong]?"), Image("image/png", "QUJD")))
    return [
        TurnStarted(picture),
        Steered(reminder("It is Monday.")),
        Steered(told),
        *called("1", "read_file", ToolResult("1,390.00\n" * 800), path="sales.csv"),
        *called("2", "activate_skill", ToolResult(SKILL), skill="charts"),
        SkillsChanged((ActiveSkill("charts", "a1", "d1"),)),
        *called("3", "grep", failure("timeout", "slow"), pattern="x"),
        MessageDone(Message("assistant", (Text("It adds up."),), origin="assistant")),
        TurnStarted(user("And now?")),
    ]


@pytest.fixture
def tokens(ba_home: Path, tmp_path: Path) -> Tokens:
    return Tokens(
        lambda: MODEL, encoders_of(places(), tmp_path, lambda: False), TokenCalibration(tmp_path / "ratios.json")
    )


def parts(
    events: Sequence[Event], tokens: Tokens, loaded: RequestPrefix = LOADED, model: ModelInfo = MODEL
) -> dict[str, ContextPart]:
    found = context_parts(loaded, Transcript(events=events), tokens, model, 8_000)
    return {part.label: part for part in found}


def labels(items: Sequence[ContextItem]) -> list[str]:
    return [item.label for item in items]


def test_everything_counts_once(tokens: Tokens) -> None:
    found = parts(story(), tokens)
    messages = Transcript(events=story()).messages
    whole = tokens.text(LOADED.system) + tokens.count_tools(TOOLS) + tokens.count(messages)
    assert sum(part.tokens for part in found.values() if not part.kept_free) == whole
    assert found["Reserved for reply"].tokens == 8_000
    assert found["Tool results"].tokens > 2_000
    assert 300 < found["Skills"].tokens < 1_000
    assert 50 < found["Memory files"].tokens < 300
    assert 0 < found["Conversation"].tokens < found["Skills"].tokens + 1_500


def test_a_model_that_writes_its_calls_is_told(tokens: Tokens) -> None:
    found = parts(story(), tokens, model=replace(MODEL, tools="react"))
    assert found["Tools"].detail.endswith("; the model writes its calls as text (react)")


def test_what_is_loaded_and_why(tokens: Tokens) -> None:
    found = parts(story(), tokens)
    assert found["System prompt"].items[0].text == "You are ba."
    assert found["Tools"].detail == "2 listed, 3 found by searching"
    assert sorted(labels(found["Tools"].items)) == ["grep", "read_file"]
    assert [(item.label, item.detail) for item in found["Memory files"].items] == [("AGENTS.md", "sent in round 1")]
    assert found["Memory files"].items[0].text == RULES.text
    assert (labels(found["Skills"].items), found["Skills"].detail) == (["charts"], "active: charts")


def test_the_list_of_skills_counts_as_skills(tokens: Tokens) -> None:
    listed = RequestPrefix("You are ba.\n\nSkills:\n- charts", "built in", TOOLS, 0, (RULES,), (SKILLS,))
    found, before = parts(story(), tokens, listed), parts(story(), tokens)
    assert found["System prompt"] == before["System prompt"]
    assert labels(found["Skills"].items) == ["list of skills", "charts"]
    assert found["Skills"].items[0].text == SKILLS.listed
    whole = tokens.text(listed.system) + tokens.count_tools(TOOLS) + tokens.count(Transcript(events=story()).messages)
    assert sum(part.tokens for part in found.values() if not part.kept_free) == whole


def test_results_and_messages_say_where_they_stand(tokens: Tokens) -> None:
    found = parts(story(), tokens)
    results = found["Tool results"].items
    assert labels(results) == ["read_file sales.csv", "grep x"]
    assert results[0].said
    assert results[0].text.startswith("1,390.00")
    talk = found["Conversation"].items
    assert labels(talk)[0] == "you: What is [wrong]? [a picture, image/png]"
    assert talk[-1].label == "you: And now?"
    assert talk[-1].detail == "round 2"
    assert "reminder: It is Monday." in labels(talk)


def test_before_the_first_prompt_files_wait_and_bad_ones_are_told(tokens: Tokens) -> None:
    gone = Instructions("CLAUDE.md", "", "can't be read: Permission denied")
    loaded = RequestPrefix("You are ba.", "built in", TOOLS, 0, (RULES, gone))
    items = parts([], tokens, loaded)["Memory files"].items
    assert [(item.label, item.detail) for item in items] == [
        ("AGENTS.md", "added to the next prompt"),
        ("CLAUDE.md", "can't be read: Permission denied"),
    ]
    assert items[0].tokens > 50
