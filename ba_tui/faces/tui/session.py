"""The open session: services, conversation, and choices that the user made before the first prompt.

No widgets. ``assemble`` is slow and meant for a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ba_tui.core.calls import OwnShell
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Mode, Notice
from ba_tui.core.ports.agents import Work
from ba_tui.core.ports.sessions import unsaved
from ba_tui.core.provider import ModelInfo
from ba_tui.core.services import Connect, Services, begin, open_or_view
from ba_tui.core.start import Start
from ba_tui.core.turn import Turn

MEANING: dict[Mode, str] = {
    "default": "Asks before edits and commands.",
    "accept-edits": "Edits files in this folder without asking; commands still ask.",
    "plan": "Only reads. The model ends with a plan that you approve.",
    "auto": "Runs sandboxed commands without asking.",
    "bypass": "Never asks; deny rules still apply.",
}


class OpenSession:
    """The open session. Choices made before the first prompt are written with it: without a prompt there is no file."""

    def __init__(self, connect: Connect, start: Start) -> None:
        self._connect = connect
        self.start = start
        self.services: Services | None = None
        self.conversation: Conversation | None = None
        self.started = False
        """Whether the session has a turn, or a command of the user's own."""
        self.ran = False
        """Whether it has such a command."""
        self.refused: set[Path] = set()
        """Folders that the user refused to trust in this run."""
        self.reads_only = False
        """Whether the folder of this session is not trusted."""
        self.folders: list[Path] = []
        """Folders that the user added to the workspace."""
        self.untold: list[Notice] = []
        """Notices from before the session was open."""
        self.remembered: list[tuple[str, ...]] = []
        """Changes of memory while this session is open, by the ids of their entries, newest last: for undo."""
        self.news: list[tuple[str, float]] = []
        """Background agents that have ended, and when the user was notified, by the monotonic clock."""
        self._mode: Mode | None = None
        self._model: str | None = None

    @property
    def cwd(self) -> Path:
        return self.conversation.cwd if self.conversation else Path.cwd()

    @property
    def mode(self) -> Mode:
        return self.conversation.permissions.mode if self.conversation else "default"

    @property
    def read_only(self) -> str:
        """The process that writes the session, if it is read-only here."""
        return self.conversation.read_only if self.conversation else ""

    @property
    def marks(self) -> Sequence[str]:
        """Unusual facts about the session, one word for each."""
        private = self.conversation is not None and self.conversation.transcript.private
        lost = unsaved(self.conversation) is not None
        unusual = {
            "not trusted": self.reads_only,
            "read-only": bool(self.read_only),
            "private": private,
            "NOT SAVED": lost,
        }
        return [word for word, holds in unusual.items() if holds]

    @property
    def live(self) -> tuple[Services, Conversation]:
        """The services and the conversation. Raises UsageError until ``assemble`` has returned."""
        if self.services is None or self.conversation is None:
            raise UsageError("ba is still starting.", "Try again in a moment.")
        return self.services, self.conversation

    def resume_hint(self) -> str:
        """Return how to resume this session; empty when there is nothing to resume."""
        if self.conversation is None or not self.started or not self.start.kept:
            return ""
        if (lost := unsaved(self.conversation)) and not lost.partly:
            return ""
        hint = f"Resume with: ba -r {self.conversation.id}"
        with suppress(OSError):
            # ba -c searches the folder of the shell, which --cwd can differ from.
            if self.conversation.cwd.samefile("."):
                return f"{hint}  (or ba -c: the newest session in this folder)"
        return hint

    def assemble(self) -> list[Notice]:
        """Create the services and the first conversation; return notices for the user.

        Raises:
            BaError: creation failed; another call tries again.
        """
        services = self.services or self._connect()
        notices = list(services.notices)
        try:
            conversation, started = self._first(services)
        except BaError as error:
            notices.append(Notice(str(error), "warning", f"A new session is open instead. {error.hint}".strip()))
            conversation, started = services.library.create(), False
        self.services, self.conversation, self.started = services, conversation, started
        return notices

    def _first(self, services: Services) -> tuple[Conversation, bool]:
        if self.start.resume in {None, "pick"}:
            return services.library.create(), False
        return begin(services.library, self.start, view=True), True

    async def change(self, id: str | None) -> None:
        """Open another session, or a new one, and close this one. A new session keeps the mode and the model.

        Raises:
            StorageError: the other session can't be opened; this one stays open.
        """
        services, old = self.live
        if id is not None and id == old.id:
            return
        work = services.library.create if id is None else partial(open_or_view, services.library, id)
        mode, model = self.mode, old.model
        new = await asyncio.to_thread(work)
        await old.close()
        self.conversation, self.started, self.ran = new, id is not None, False
        self._mode = self._model = None
        if id is None:
            new.permissions.set_mode(mode)
            self._mode = mode if mode != "default" else None
            if model != new.model:
                self.use_model(model)

    async def reopen(self) -> Sequence[Notice]:
        """Recreate the services and open the same session again, because its folders or their trust have changed.

        Raises:
            BaError: creation failed; the session stays open unchanged.
        """
        _, old = self.live
        services = await asyncio.to_thread(self._renewed)
        notices = list(services.notices)
        await old.close()
        try:
            work = partial(open_or_view, services.library, old.id) if self.started else services.library.create
            new = await asyncio.to_thread(work)
        except BaError as error:
            notices.append(Notice(str(error), "warning", f"A new session is open instead. {error.hint}".strip()))
            new, self.started = await asyncio.to_thread(services.library.create), False
        self.services, self.conversation = services, new
        if self._mode:
            new.permissions.set_mode(self._mode)
        if self._model:
            self.use_model(self._model)
        return notices

    def _renewed(self) -> Services:
        widen = self.services.with_folders if self.services else None
        return widen(self.folders) if widen and self.folders else self._connect()

    def set_mode(self, mode: Mode) -> None:
        _, conversation = self.live
        if self.started:
            conversation.set_mode(mode)
        else:
            conversation.permissions.set_mode(mode)
            self._mode = mode

    def use_model(self, name: str) -> ModelInfo:
        """Select a model for the next turns. Raises UsageError for one that can't be used."""
        _, conversation = self.live
        if self.started:
            return conversation.use_model(name)
        before, conversation.model = conversation.model, name
        try:
            info = conversation.model_info()
        except UsageError:
            conversation.model = before
            raise
        conversation.model = self._model = info.id
        return info

    def say(self, prompt: str, work: Work | None = None) -> Turn:
        """Start a turn with ``prompt``; ``work`` answers instead of the model.

        Raises UsageError, or StorageError when earlier choices can't be written.
        """
        turn = self._chosen().say(prompt, work)
        self.started = True
        return turn

    def run(self, begin: Callable[[OwnShell], Turn]) -> Turn:
        """Start a command or query of the user's own. Raises as ``say`` does."""
        turn = begin(self._chosen().shell)
        self.started = self.ran = True
        return turn

    def _chosen(self) -> Conversation:
        """Return the conversation after applying choices from before its first prompt."""
        _, conversation = self.live
        if self._model:
            conversation.use_model(self._model)
        if self._mode:
            conversation.set_mode(self._mode)
        self._mode = self._model = None
        return conversation

    def taken_back(self) -> None:
        """Note that the prompt was refused, so that a session it would have started has not started."""
        if self.conversation:
            self.started = self.ran or bool(self.conversation.transcript.messages)
