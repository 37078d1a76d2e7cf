"""Which folders ba may work in: the trust dialog, and the command that adds a folder until ba ends.

``trust`` and ``acts.sessions`` carry out the answer.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.widgets import Static

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import ASKS_AGAIN, AskedSetting, FolderTrust, RuleVerdict, TrustState
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.acts.port import Actions, refuse_while_busy
from ba_tui.faces.tui.inspector.diff import diff_rows
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, visible
from ba_tui.faces.tui.screens.list_screen import ChoiceList, ListRow
from ba_tui.faces.tui.screens.sheet import Sheet
from ba_tui.faces.tui.session import OpenSession
from ba_tui.resources import project_root

TrustAnswer: TypeAlias = Literal["trust", "no", "quit", "revoke"]
Answers: TypeAlias = Sequence[tuple[TrustAnswer | None, str, str]]

IGNORED = 0.5
"""Seconds without a key until keys are accepted: earlier ones were meant for something else."""
MEANING = (
    "Yes: models read its context files. Its tools, hooks and MCP servers may run.",
    "No: ba only reads here. Its context files, tools, hooks and servers stay off.",
)
MEANING_LOW = ("Yes: its tools and hooks may run.", "No: ba only reads here.")
TITLES = {
    "unknown": "Do you trust this folder?",
    "changed": "The tools or hooks of this folder changed. Do you still trust it?",
    "trusted": "You trust this folder",
}
WRITTEN = "Tools wrote instructions here. May models read them?"
WRITTEN_MEANING = (
    "Yes: models follow these files as instructions, from now on.",
    "No: models do not read them. All else stays as it is.",
)
CHANGED_LOW = "Changed. Do you still trust it?"
ALLOWING = "Allow this setting of the project?"
NOTHING = "This folder has no context files, tools, servers, hooks, skills or settings."
SERVERS = "MCP servers"
TIGHT = 18
"""Lines of a screen on which fewer words are used."""
MOVES = {"pageup": "page_up", "pagedown": "page_down", "space": "page_down", "home": "home", "end": "end"}
LINES = {"j": "down", "k": "up"}


class ChoiceScreen(Sheet[TrustAnswer]):
    """A question with ``answers``: the verdict, keys and words of each; None leaves all as it is. The safe one is
    chosen first. Keys typed before the question appeared do not answer it. ``clock`` in seconds."""

    def __init__(
        self, title: str, answers: Answers, *, keys: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(title, keys=keys, classes="trust")
        self._clock = clock
        self._quiet_since = clock()
        self._answers = answers
        self._row = next(row for row, (verdict, _, _) in enumerate(self._answers) if verdict in {"no", None})

    @property
    def listening(self) -> bool:
        """Whether keys are accepted yet."""
        return self._clock() - self._quiet_since >= IGNORED

    def _paint(self) -> None:
        rows: list[GridRow] = []
        for index, (_, key, words) in enumerate(self._answers):
            here = index == self._row
            rows.append(line((words, ""), gutter=f"{'❯' if here else ' '} {key:<3}  ", tone="selected" if here else ""))
        view = self.query_one("#trust-answers", RowView)
        view.styles.height = len(rows)
        view.put(rows)

    def on_key(self, event: events.Key) -> None:
        """Process every key: nothing typed here is text."""
        event.stop()
        event.prevent_default()
        if not self.listening:
            # A user who is still typing has not read the question yet.
            self._quiet_since = self._clock()
            return
        key = event.key
        if key in {"up", "down"}:
            self._row = (self._row + (1 if key == "down" else -1)) % len(self._answers)
            self._paint()
        elif key == "enter":
            self.dismiss(self._answers[self._row][0])
        elif self._moved(key):
            return
        elif key == "escape":
            self.dismiss("no" if any(verdict == "no" for verdict, _, _ in self._answers) else None)
        else:
            for verdict, keys, _ in self._answers:
                if key in keys.split():
                    self.dismiss(verdict)
                    return

    def _moved(self, key: str) -> bool:
        """Return whether ``key`` scrolled the body."""
        if key in MOVES or key in LINES:
            self.query_one("#trust-body", RowView).action_move(MOVES.get(key) or LINES[key])
            return True
        return False

    @on(RowView.Picked, "#trust-answers")
    def _clicked(self, event: RowView.Picked) -> None:
        event.stop()
        if self.listening and event.row < len(self._answers):
            self.dismiss(self._answers[event.row][0])


class AllowScreen(ChoiceScreen):
    """Asks whether the settings of a trusted project may have one value. Dismissed with "trust" or "no"."""

    def __init__(self, asked: AskedSetting, *, clock: Callable[[], float] = time.monotonic) -> None:
        answers: Answers = (("trust", "1 y", "Yes, allow it"), ("no", "2 n", "No, leave it out"))
        super().__init__(ALLOWING, answers, keys="↑ ↓ Enter choose · Esc no · PgUp PgDn scroll", clock=clock)
        self.asked = asked

    def body(self) -> ComposeResult:
        yield _quiet(RowView(id="trust-body", word_wrap=True))
        yield _quiet(RowView(id="trust-answers", word_wrap=True))

    def on_mount(self) -> None:
        # The body wraps and scrolls: all of the value can be read, however long it is.
        asked = self.asked
        texts = (asked.question, "", f"{asked.setting}: {asked.value}", asked.source)
        self.query_one("#trust-body", RowView).put([line((visible(text), "")) for text in texts])
        self._paint()


class TrustScreen(ChoiceScreen):
    """Dismissed with the verdict, or with None when all stays as it is. ``starting``: nothing was sent here yet, so
    leaving is one of the answers."""

    def __init__(self, seen: TrustState, *, starting: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__("", answers(seen, starting=starting), clock=clock)
        self.seen = seen
        self._whole = self._begins_whole = seen.state == "changed" or written_only(seen)

    @property
    def _turned(self) -> bool:
        """Whether the other view is shown than at first, so that Esc goes back to that one."""
        return self._whole != self._begins_whole

    def body(self) -> ComposeResult:
        yield Static(visible(str(self.seen.root)), classes="lead", markup=False)
        warning = Static(visible(self.seen.trouble or self.seen.warning), id="trust-warning", markup=False)
        warning.display = bool(self.seen.trouble or self.seen.warning)
        yield warning
        yield Static(id="trust-meaning", markup=False)
        yield _quiet(RowView(id="trust-body", word_wrap=True))
        yield _quiet(RowView(id="trust-answers", word_wrap=True))

    def on_mount(self) -> None:
        self._show_body()
        self._paint()

    def _show_body(self) -> None:
        seen, whole = self.seen, self._whole
        self.query_one("#trust-body", RowView).show(lambda: body_rows(seen, whole=whole))
        self._hint()

    def _hint(self) -> None:
        """Show the texts that depend on the height of the screen."""
        low = self.app.size.height < TIGHT  # pyright: ignore[reportUnknownMemberType] - App is generic
        title = CHANGED_LOW if low and self.seen.state == "changed" else TITLES[self.seen.state]
        title = WRITTEN if written_only(self.seen) else title
        self.entitle(title)
        meaning = WRITTEN_MEANING if written_only(self.seen) else MEANING_LOW if low else MEANING
        self.query_one("#trust-meaning", Static).update("\n".join(meaning))
        keys = ["↑ ↓ Enter" if low else "↑ ↓ Enter choose"]
        if self.seen.files:
            keys.append("d summary" if self._whole else "d read the files")
            keys += ["Esc back"] if self._turned else []
        keys.append("PgUp PgDn" if low else "PgUp PgDn scroll")
        self.keys = " · ".join(keys)
        self.say("")

    def on_resize(self) -> None:
        self._hint()

    def _moved(self, key: str) -> bool:
        if (key == "escape" and self._turned) or (key == "d" and self.seen.files):
            self._whole = not self._whole
            self._show_body()
            return True
        return super()._moved(key)


def _quiet(view: RowView) -> RowView:
    """Return ``view`` without focus, so that keys reach the screen."""
    view.can_focus = False
    return view


def written_only(seen: TrustState) -> bool:
    """Return whether the question is only about instruction files that tools wrote in a trusted folder."""
    return seen.state == "trusted" and bool(seen.written)


def answers(seen: TrustState, *, starting: bool) -> Answers:
    """Return verdict, keys and words of each answer. The verdict None changes nothing."""
    if written_only(seen):
        return (
            ("trust", "1 y", "Yes, models may read them"),
            (None, "2 n", "No, leave them out"),
            ("revoke", "3", "Stop trusting this folder: only read from now on"),
        )
    if seen.state == "trusted":
        return (None, "1 y", "Keep trusting"), ("revoke", "2 n", "Stop trusting: only read from now on")
    rows: list[tuple[TrustAnswer | None, str, str]] = []
    if not seen.trouble:
        changed = seen.state == "changed"
        rows.append(("trust", "1 y", "Yes, trust it with these changes" if changed else "Yes, trust this folder"))
    rows.append(("no", "2 n", "No, look around only"))
    if starting:
        rows.append(("quit", "3 q", "Quit ba"))
    return rows


def body_rows(seen: TrustState, *, whole: bool) -> list[GridRow]:
    """Return the contents of the folder by kind; ``whole``: every file, or its changes."""
    if seen.trouble:
        return []
    if not whole:
        return ([] if seen.holds else [line((NOTHING, "muted"))]) + _brought(seen)
    rows: list[GridRow] = [line((visible(each.line), "warning")) for each in seen.written]
    rows += _left_out(seen)
    if seen.gone:
        rows += [line((f"{visible(name)} is gone", "warning")) for name in seen.gone]
    for file in seen.files:
        rows += [line(("", ""))] if rows else []
        rows += diff_rows(file)
    return rows


def _brought(seen: TrustState) -> list[GridRow]:
    rows: list[GridRow] = []
    for part in seen.holds:
        gutter = f"{part.kind:<11}  {len(part.names):>3}  "
        # A command line is read as a whole, so each has a row.
        for text in part.names if part.kind == SERVERS else (", ".join(part.names),):
            rows.append(line((visible(text), ""), gutter=gutter))
            gutter = " " * len(gutter)
    rows += [line((visible(link), "warning"), gutter=f"{'link':<11}       ") for link in seen.links]
    rows += _left_out(seen)
    rows += [line((visible(each.line), "warning"), gutter=f"{'by tools':<11}       ") for each in seen.written]
    return rows


def _left_out(seen: TrustState) -> list[GridRow]:
    """Return the settings that are ignored even in a trusted folder."""
    return [line((visible(text), "warning"), gutter=f"{'left out':<11}       ") for text in seen.refused]


async def trust(chat: Actions, _: str) -> None:
    """Show whether the folder is trusted, and let the user change it."""
    refuse_while_busy(chat)
    services, conversation = chat.session.live
    if services.trust is None:
        raise UsageError("ba made this folder itself, so there is nothing to trust.")
    root = project_root(conversation.cwd)
    seen = await asyncio.to_thread(services.trust.look, root)
    match await ask_trust(chat, seen, starting=False):
        case "trust":
            chat.session.refused.discard(root)
            notices = await grant_trust(chat, services.trust, seen, ())
        case "revoke":
            await asyncio.to_thread(services.trust.revoke, root)
            chat.session.refused.add(root)
            notices = await chat.session.reopen()
        case _:
            if seen.state != "trusted" or not await _allow(chat, services.trust, root):
                return
            notices = _unanswered(await chat.session.reopen())
    now = await asyncio.to_thread(services.trust.look, root)
    chat.session.reads_only = now.state != "trusted"
    await chat.show_session()
    for notice in notices:
        chat.tell(notice)
    chat.activity.hint("This folder is not trusted." if chat.session.reads_only else "This folder is trusted.")


async def ask_trust(chat: Actions, seen: TrustState, *, starting: bool) -> TrustAnswer | None:
    return await chat.ba.push_screen_wait(TrustScreen(seen, starting=starting))


async def grant_trust(
    chat: Actions, trusting: FolderTrust, seen: TrustState, notices: Sequence[Notice]
) -> Sequence[Notice]:
    """Trust the folder as it was shown, and reopen the session with its tools, hooks and settings."""
    services, _ = chat.session.live
    kept = [notice for notice in notices if notice not in services.notices]
    try:
        await asyncio.to_thread(trusting.grant, seen)
        await _allow(chat, trusting, seen.root)
        return [*kept, *_unanswered(await chat.session.reopen())]
    except BaError as error:
        chat.session.reads_only = True
        return [*notices, Notice(str(error), "error", error.hint)]


async def _allow(chat: Actions, trusting: FolderTrust, root: Path) -> bool:
    """Ask about each value in the project's settings that needs permission; return whether one was allowed now.

    Raises:
        StorageError: an answer can't be saved.
    """
    waiting = [each for each in await asyncio.to_thread(trusting.asked, root) if not each.allowed]
    allowed = [each for each in waiting if await chat.ba.push_screen_wait(AllowScreen(each)) == "trust"]
    for each in allowed:
        await asyncio.to_thread(trusting.allow, root, each)
    return bool(allowed)


def _unanswered(notices: Sequence[Notice]) -> list[Notice]:
    """Return ``notices`` without those about values that the user has just refused."""
    return [notice for notice in notices if notice.hint != ASKS_AGAIN]


ADD = "add"
VERDICTS: Mapping[str, RuleVerdict] = {"allow": "allow", "ask": "ask", "deny": "deny"}


async def add_dir(chat: Actions, text: str) -> None:
    """Add a folder to the workspace, after asking the user."""
    _, conversation = chat.session.live
    if not text:
        raise UsageError("The folder is missing.", "Type it after the command: /add-dir ../library")
    refuse_while_busy(chat)
    folder = await asyncio.to_thread(_folder, text, conversation.cwd)
    roots = (await asyncio.to_thread(project_root, conversation.cwd), *chat.session.folders)
    shown = paintable(str(folder), newlines=False)
    if any(folder.is_relative_to(root.resolve()) for root in roots):
        chat.activity.hint(f"{shown} is part of the workspace already.")
        return
    jobs = conversation.inventory.jobs
    running = jobs is not None and any(job.state == "running" for job in jobs.list())
    lead = "The folder is outside this project. Until ba ends, ba may read it, and change it as the mode allows."
    lead += " Background commands end." if running else ""
    choices = (ListRow[str](ADD, ("Add this folder",)), ListRow[str]("cancel", ("Cancel",)))
    dialog = ChoiceList(f"Work in {shown} too?", choices, lead=lead)
    if await chat.ba.push_screen_wait(dialog) != ADD:
        return
    news = await _widen(chat.session, folder)
    await chat.show_session()
    for notice in news:
        chat.tell(notice)
    chat.activity.hint(f"{shown} is part of the workspace until ba ends.")


async def _widen(session: OpenSession, folder: Path) -> Sequence[Notice]:
    """Reopen the session with ``folder`` and return new notices. Rules for this session are kept."""
    services, old = session.live
    if services.with_folders is None:
        raise UsageError("A folder can't be added here.", "Start ba with --add-dir DIR.")
    rules = [rule for rule in await asyncio.to_thread(old.permissions.rules) if rule.layer == "session"]
    session.folders.append(folder)
    try:
        notices = await session.reopen()
    except BaError:
        session.folders.remove(folder)
        raise
    add = session.live[1].permissions.add
    for rule in rules:
        with suppress(BaError):
            await asyncio.to_thread(add, rule.rule, VERDICTS[rule.verdict], "session")
    return [notice for notice in notices if notice not in services.notices]


def _folder(text: str, cwd: Path) -> Path:
    """Return the folder that ``text`` names, literally or quoted as in a shell. Raises UsageError if there is none."""
    words = [text]
    with suppress(ValueError):
        words += [split[0] for split in (shlex.split(text),) if len(split) == 1]
    for word in words:
        with suppress(OSError, RuntimeError, ValueError):
            path = (cwd / Path(word).expanduser()).resolve()
            if path.is_dir():
                return path
    raise UsageError(f"There is no folder {paintable(text, newlines=False)}.", "Check the path; Tab completes it.")
