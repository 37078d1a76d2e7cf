"""Skills in a conversation: started by model, person, file or setting; what holds, what ends, what stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Asked, Notice, SkillsChanged, Steered, ToolFinished
from ba_tui.core.messages import ToolOutput, user
from ba_tui.core.ports.context import Skills
from ba_tui.core.questions import Question, Reply
from tests.skills.world import World, call, put, questions, results, said, together, told, yes


def skills_of(conversation: Conversation) -> Skills:
    assert conversation.inventory.skills is not None
    return conversation.inventory.skills


def active(conversation: Conversation) -> list[str]:
    return [skill.id for skill in conversation.transcript.skills]


async def test_a_model_starts_reads_and_ends_a_skill(world: World) -> None:
    put(world.own, "greet", "Greet $ARGUMENTS.", reference_md="A reference.")
    conversation = world.open(
        call("activate_skill", skill_id="greet", parameters="Bob"),
        call("read_file", path="skills/greet/reference.md"),
        call("write_file", path="skills/greet/reference.md", content="x"),
        call("end_skill"),
    )
    started, read, written, ended = results(await said(conversation, "Greet Bob"))
    assert "Greet Bob." in started
    assert "- skills/greet/reference.md (12 bytes)" in started
    assert "@skill:greet is the folder of this skill, in commands and Python too" in started
    assert str(world.own) not in started
    assert "A reference." in read
    assert "can only be read" in written
    assert ended.startswith("Ended: greet.")
    assert active(conversation) == []
    await conversation.close()


async def test_the_stack_survives_a_resume_and_ends_with_the_parent(world: World) -> None:
    for name in ("one", "two"):
        put(world.own, name)
    conversation = world.open(call("activate_skill", skill_id="one"), call("activate_skill", skill_id="two"))
    await said(conversation, "go")
    await conversation.close()
    before = [{"say": "Said before."}] * 3
    again = world.open(*before, {"say": "Still there."}, call("end_skill", skill_id="one"), session=conversation.id)
    events = await said(again, "more")
    assert active(again) == ["one", "two"]
    assert not [event for event in events if isinstance(event, Steered) and event.message.origin == "skill"]
    assert results(await said(again, "end"))[0].startswith("Ended: two, one.")
    await again.close()


async def test_cycles_are_refused_with_their_path_and_depth_has_an_end(world: World) -> None:
    for name in ("a", "b", "c", "d"):
        put(world.own, name)
    steps = [call("activate_skill", skill_id=name) for name in ("a", "b", "c", "a", "d")]
    conversation = world.open(*steps)
    *_, cycle, deep = results(await said(conversation, "go"))
    assert "a → b → c → a" in cycle
    assert "At most 3 skills" in deep
    assert "a → b → c → d" in deep
    await conversation.close()


async def test_two_started_in_one_answer_are_both_active(world: World) -> None:
    put(world.own, "one")
    put(world.own, "two")
    both = together(call("activate_skill", skill_id="one"), call("activate_skill", skill_id="two"))
    conversation = world.open(both)
    await said(conversation, "go")
    assert sorted(active(conversation)) == ["one", "two"]
    await conversation.close()


async def test_tools_are_used_without_asking_once_the_person_confirmed_just_this_content(world: World) -> None:
    skill = put(world.own, "lister", head="allowed-tools: Write Bash(git:*)\n")
    write = call("write_file", path="out.txt", content="1")
    conversation = world.open(call("activate_skill", skill_id="lister"), write, call("end_skill"), write)
    events = await said(conversation, "go", yes)
    consent, after = questions(events)
    assert consent.tool == "activate_skill"
    assert consent.args["allowed_tools"] == ["write_file", "shell(git:*)"]
    assert after.tool == "write_file"
    await conversation.close()
    again = world.open(call("activate_skill", skill_id="lister"), write)
    assert questions(await said(again, "go")) == []
    await again.close()
    (skill / "more.md").write_text("another")
    changed = world.open(call("activate_skill", skill_id="lister"), call("write_file", path="new.txt", content="1"))
    assert [question.tool for question in questions(await said(changed, "go"))] == ["activate_skill", "write_file"]
    await changed.close()


async def test_a_denied_confirmation_starts_the_skill_and_asks_as_usual(world: World) -> None:
    put(world.own, "lister", head="allowed-tools: [Write, Read]\n")
    conversation = world.open(call("activate_skill", skill_id="lister"), call("write_file", path="o", content="1"))
    events = await said(conversation, "go", lambda question: Reply("deny", "Rather not."))
    assert "The user is asked about each call as usual. They said: Rather not." in results(events)[0]
    assert [question.tool for question in questions(events)] == ["activate_skill", "write_file"]
    assert active(conversation) == ["lister"]
    await conversation.close()


async def test_a_skill_may_forbid_all_tools_but_its_own(world: World) -> None:
    put(world.own, "reader", head='allowed-tools: Read\nmetadata:\n  only-allowed-tools: "true"\n')
    conversation = world.open(call("activate_skill", skill_id="reader"), call("glob", pattern="*"), call("end_skill"))
    _, refused, ended = results(await said(conversation, "go", yes))
    assert "only these tools may be used: read_file" in refused
    assert ended.startswith("Ended")
    await conversation.close()


async def test_the_person_starts_one_with_parameters_and_ends_it(world: World) -> None:
    put(world.own, "greet", "Greet $ARGUMENTS.", head="disable-model-invocation: true\n")
    conversation = world.open(call("activate_skill", skill_id="greet"))
    skills = skills_of(conversation)
    assert "is started by the user only" in results(await said(conversation, "go"))[0]
    skills.activate("greet", "Ann")
    assert {line.id: line.state for line in skills.lines()}["greet"] == "waiting"
    events = await said(conversation, "hello")
    joined = [event for event in events if isinstance(event, SkillsChanged | Steered)]
    at = next(index for index, event in enumerate(joined) if isinstance(event, SkillsChanged))
    note = joined[at + 1]
    assert isinstance(note, Steered)
    assert note.message.hidden
    assert "Greet Ann." in note.message.text
    assert any(isinstance(event, Notice) and "greet started" in event.text for event in events)
    skills.activate("greet", "Eve")
    await said(conversation, "again")
    assert [skill.parameters for skill in conversation.transcript.skills] == ["Eve"]
    skills.end("greet")
    await said(conversation, "stop")
    assert active(conversation) == []
    with pytest.raises(UsageError, match="not active"):
        skills.end("greet")
    await conversation.close()


async def test_what_the_person_starts_while_tools_run_comes_after_their_results(world: World) -> None:
    put(world.own, "greet")
    conversation = world.open(call("glob", pattern="*"))
    skills, started = skills_of(conversation), False
    turn = conversation.say("go")
    async for event in turn:
        if isinstance(event, ToolFinished) and not started:
            skills.activate("greet")
            started = True
    answers = next(m for m in conversation.transcript.messages if isinstance(m.blocks[0], ToolOutput))
    assert "The user started the skill greet" in answers.text
    assert active(conversation) == ["greet"]
    await conversation.close()


async def test_instructions_that_a_compression_took_are_said_again(world: World) -> None:
    from ba_tui.core.events import Compressed

    put(world.own, "greet", "Greet warmly.")
    conversation = world.open(call("activate_skill", skill_id="greet"))
    await said(conversation, "go")
    conversation.transcript.apply(Compressed((user("Earlier: a greeting."),), "summarize", 10, 5, turn_start=1))
    assert "Greet warmly." not in told(conversation)
    await said(conversation, "on")
    assert told(conversation).count("Greet warmly.") == 1
    await said(conversation, "and on")
    assert told(conversation).count("Greet warmly.") == 1
    await conversation.close()


async def test_settings_start_hide_and_attach(world: World) -> None:
    for name in ("always", "hidden", "invoices"):
        put(world.own, name)
    (world.home / "skills.yaml").write_text(
        "core: [always]\noptional:\n  hidden: {enabled: false}\n"
        "  invoices: {auto_load_on_file_types: [.INV], description: Reads invoices.}\n"
    )
    conversation = world.open(call("activate_skill", skill_id="hidden"))
    skills = skills_of(conversation)
    assert skills.handlers("a/B.inv") == ["invoices"]
    assert skills.attach(["x.inv", "y.inv", "z.txt"]) == ["invoices"]
    assert "switched off for models" in results(await said(conversation, "go"))[0]
    assert active(conversation) == ["always", "invoices"]
    states = {line.id: line.state for line in skills.lines()}
    assert (states["hidden"], states["always"]) == ("off", "active")
    skills.activate("hidden")
    await said(conversation, "on")
    assert active(conversation) == ["always", "invoices", "hidden"]
    await conversation.close()


async def test_what_is_wrong_at_the_start_is_said_once_in_whole_sentences(world: World) -> None:
    put(world.own, "fine")
    (world.own / "fine" / "SKILL.md").write_text("---\nname: [x\n---\n")
    (world.home / "skills.yaml").write_text("global: {enabld: true}\ncore: [fin, fine]\n")
    conversation = world.open()
    slip, unknown, broken = (event.text for event in await said(conversation, "go") if isinstance(event, Notice))
    assert slip.endswith("did you mean 'enabled'?")
    assert unknown.endswith("there is no skill 'fin'; did you mean 'fine'?")
    assert broken.endswith(".")
    await conversation.close()


async def test_skills_of_a_project_wait_for_trust(tmp_path: Path, ba_home: Path) -> None:
    world = World(tmp_path / "project", ba_home)
    put(world.project / ".claude" / "skills", "theirs")
    conversation = world.open()
    assert "theirs" not in [line.id for line in skills_of(conversation).lines()]
    with pytest.raises(UsageError, match="no skill 'theirs'"):
        skills_of(conversation).activate("theirs")
    await conversation.close()
    again = world.trusted().open()
    assert "theirs" in [line.id for line in skills_of(again).lines()]
    await again.close()


async def test_a_path_of_the_workspace_wins_over_a_skill_of_that_name(world: World) -> None:
    put(world.own, "greet", reference_md="The skill's.")
    (world.project / "skills" / "greet").mkdir(parents=True)
    (world.project / "skills" / "greet" / "reference.md").write_text("The project's.")
    conversation = world.open(
        call("activate_skill", skill_id="greet"),
        call("read_file", path="skills/greet/reference.md"),
        call("read_file", path="@skill:greet/reference.md"),
    )
    started, own, lent = results(await said(conversation, "go"))
    assert "@skill:greet/reference.md" in started
    assert "The project's." in own
    assert "The skill's." in lent
    await conversation.close()


async def test_level_one_describes_and_level_three_brings_the_files(world: World) -> None:
    put(world.own, "greet", "Body.", reference_md="A reference.", notes_bin="\0\1")
    conversation = world.open(
        call("activate_skill", skill_id="greet", level=1), call("activate_skill", skill_id="greet", level=3)
    )
    first, third = results(await said(conversation, "go"))
    assert first.startswith("greet: What greet does.")
    assert "Body." not in first
    assert "A reference." in third
    assert "too long or no text: notes.bin" in third
    await conversation.close()


async def test_another_model_answers_while_a_skill_wants_it(world: World) -> None:
    other = world.home / "other.yaml"
    other.write_text(json.dumps({"steps": [{"say": "I am the other."}]}))
    put(world.own, "greet", head=f"model: scripted:{other}\n")
    put(world.own, "lost", head="model: nobody/none\n")
    conversation = world.open(call("activate_skill", skill_id="greet"), call("activate_skill", skill_id="lost"))
    await said(conversation, "go")
    assert "I am the other." in told(conversation)
    skills_of(conversation).end("greet")
    events = await said(conversation, "on")
    assert any(isinstance(event, Notice) and "your model is used instead" in event.text for event in events)
    await conversation.close()


async def test_a_question_of_a_skill_that_the_person_starts_reaches_them(world: World) -> None:
    put(world.own, "lister", head="allowed-tools: Write\n")
    conversation = world.open()
    skills_of(conversation).activate("lister")
    asked: list[Question] = []
    turn = conversation.say("go")
    async for event in turn:
        if isinstance(event, Asked):
            asked.append(event.question)
            turn.answer(event.ask_id, Reply("once"))
    assert [question.tool for question in asked] == ["activate_skill"]
    assert "It may use without asking: write_file." in told(conversation)
    assert {line.id: line.confirmed for line in skills_of(conversation).lines()}["lister"]
    await conversation.close()
