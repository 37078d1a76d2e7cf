"""The rooms of the screen, in the order in which help and completion list their commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.events import Event, MessageDone, Notice, TurnEnded, TurnStarted
from ba_tui.faces.tui import panes
from ba_tui.faces.tui.acts import (
    agents,
    compacting,
    data,
    editor,
    figures,
    folders,
    guide,
    inventory,
    memory,
    own_shell,
    plan,
    reports,
    rewind,
    sessions,
    settings,
    team,
    trust,
    view,
)
from ba_tui.faces.tui.acts.port import Act, Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

GO_ON = "go on"


class NextPrompt:
    """Offers it in the empty input. Does nothing where the session has no suggestions."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat
        self._suggestions = chat.session.start.suggestions
        self._answer = ""
        self._following = ""
        """What follows the prompt that was suggested, in a new session."""

    def reset(self) -> None:
        """Another session is shown, or this one after a rewind."""
        if self._suggestions and self._chat.session.started:
            self._chat.composer.suggest(GO_ON)
        elif self._following:
            self._chat.composer.suggest(self._following)

    def apply(self, event: Event) -> None:
        if not self._suggestions:
            return
        match event:
            case TurnStarted(agent="main"):
                self._chat.composer.suggest("")
            case MessageDone(agent="main", message=message):
                self._answer = message.text
            case TurnEnded(agent="main", reason=reason):
                answer, self._answer = self._answer, ""
                if reason == "cancelled":
                    self._chat.tell(Notice("Press Enter to go on with the demo."))
                # Work beside the turns ends without an answer.
                whole = answer and reason == "done"
                suggestion = self._suggestions.get(answer, "") if whole else GO_ON
                suggestion, _, self._following = suggestion.partition("\n")
                self._chat.composer.suggest(suggestion)
            case _:
                pass


SUGGESTIONS = Room({}, panes=(NextPrompt,))


ROOMS: Sequence[Room] = (
    view.HELP,
    guide.GUIDE,
    panes.QUESTIONS,
    SUGGESTIONS,
    sessions.SESSIONS,
    rewind.REWINDING,
    sessions.RECORD,
    reports.TRANSCRIPT,
    settings.MODELS,
    settings.PERMISSIONS,
    plan.PLANS,
    trust.TRUST,
    folders.FOLDERS,
    settings.CONTEXT,
    reports.STATUS,
    compacting.COMPACTION,
    data.DATA,
    figures.FIGURES,
    inventory.TOOLS,
    inventory.SKILLS,
    agents.AGENTS,
    team.TEAMS,
    inventory.MCP,
    inventory.SHELLS,
    own_shell.SHELL,
    settings.THEMES,
    settings.SETUP,
    memory.MEMORY,
    reports.SETTINGS,
    view.PANELS,
    editor.EDITOR,
    view.SCREEN,
    sessions.LEAVING,
)
ACTS: Mapping[SlashCommand, Act] = {row: act for room in ROOMS for row, act in room.commands.items()}
COMMANDS: Sequence[SlashCommand] = sorted(ACTS, key=lambda row: not row.slash)
"""ba's own commands; those that are only a key come last."""
