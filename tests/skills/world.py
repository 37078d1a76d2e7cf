"""Skills on disk and conversations with a scripted model, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, ToolFinished
from ba_tui.core.questions import Question, Reply
from ba_tui.permissions.trust.grants import trust_folder

Answer = Callable[[Question], Reply]


def put(folder: Path, name: str, body: str = "Do it.", *, description: str = "", head: str = "", **files: str) -> Path:
    """Write a skill; ``files`` by name, with ``__`` for a slash and ``_`` for the dot before the last part."""
    skill = folder / name
    skill.mkdir(parents=True, exist_ok=True)
    front = f"---\nname: {name}\ndescription: {description or f'What {name} does.'}\n{head}---\n"
    (skill / "SKILL.md").write_text(f"{front}\n{body}\n", "utf-8")
    for shown, text in files.items():
        path = skill / shown.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return skill


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args}]}


def together(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"calls": [each for one in calls for each in one["calls"]]}


class World:
    """A trusted project and the user's own folder."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.home = home
        self.own = home / "skills"
        (project / ".ba").mkdir(parents=True, exist_ok=True)

    def trusted(self) -> World:
        trust_folder(self.project)
        return self

    def open(self, *steps: dict[str, Any], session: str = "", **flags: object) -> Conversation:
        script = self.home / "script.yaml"
        script.write_text(json.dumps({"steps": [*steps, *[{"say": "Done."}] * 4]}), "utf-8")
        services = connect({"model": f"scripted:{script}", **flags}, self.project)
        return services.library.open(session) if session else services.library.create()


async def said(conversation: Conversation, prompt: str, answer: Answer | None = None) -> list[Event]:
    """All events of one turn."""
    turn = conversation.say(prompt)
    events: list[Event] = []
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked):
            turn.answer(event.ask_id, (answer or _no)(event.question))
    return events


def results(events: Sequence[Event]) -> list[str]:
    return [event.result.text for event in events if isinstance(event, ToolFinished)]


def questions(events: Sequence[Event]) -> list[Question]:
    return [event.question for event in events if isinstance(event, Asked)]


def told(conversation: Conversation) -> str:
    """All that the model would be sent of the conversation now."""
    return "\n".join(str(block) for message in conversation.transcript.messages for block in message.blocks)


def yes(question: Question) -> Reply:
    del question
    return Reply("once")


def _no(question: Question) -> Reply:
    del question
    return Reply("deny")
