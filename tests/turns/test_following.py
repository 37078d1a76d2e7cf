"""Several faces at one conversation: one writes, others watch what was and what comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from ba_tui.core.conversation import LAG, Conversation, Followers
from ba_tui.core.events import TRANSIENT, Event, MessageDone, TextDelta, TurnEnded
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from tests.script import Memory, Mind, Script, collect, conversation, says, thinking
from tests.turns.test_loop import echo, tool


class Watching:
    """A face that only watches: it folds what it sees, as every face does."""

    def __init__(self, talk: Conversation) -> None:
        self.events: list[Event] = []
        self.transcript = Transcript()
        self._moved = asyncio.Event()
        self.task = asyncio.create_task(self._watch(talk))

    async def _watch(self, talk: Conversation) -> None:
        async with aclosing(talk.follow()) as events:
            async for event in events:
                self.events.append(event)
                self.transcript.apply(event)
                self._moved.set()

    async def until(self, wanted: Event) -> None:
        async with asyncio.timeout(10):
            while wanted not in self.events:
                self._moved.clear()
                await self._moved.wait()

    def kept(self) -> list[Event]:
        return [event for event in self.events if not isinstance(event, TRANSIENT)]


async def test_two_watchers_see_what_the_writer_sees_and_what_the_journal_keeps():
    journal = Memory()
    talk = conversation(
        Script(says("", ("echo", {})), says("Done."), says("Again.")), tool("echo", echo), journal=journal
    )
    first = Watching(talk)
    written = await collect(talk.say("go"))
    late = Watching(talk)
    written += await collect(talk.say("once more"))
    talk.rename("A name")
    await talk.close()
    await asyncio.gather(first.task, late.task)
    assert first.kept() == late.kept() == journal.read()
    assert [event for event in first.events if event in written] == written
    assert first.transcript.messages == late.transcript.messages == talk.transcript.messages


async def test_who_joins_within_an_answer_gets_all_of_its_words_once():
    joined, told = asyncio.Event(), asyncio.Event()

    async def slowly(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("One ")
        told.set()
        await joined.wait()
        yield TextDelta("two.")
        yield says("One two.")

    talk = conversation(Script(slowly), journal=Memory())
    turn, seen = talk.say("go"), list[Event]()
    writing = asyncio.create_task(collect(turn, seen.append))
    await told.wait()
    watching = Watching(talk)
    await watching.until(next(event for event in seen if isinstance(event, TextDelta)))
    joined.set()
    await writing
    await talk.close()
    await watching.task
    assert [event.text for event in watching.events if isinstance(event, TextDelta)] == ["One ", "two."]
    assert [event.message.text for event in watching.events if isinstance(event, MessageDone)] == ["One two."]


async def test_a_watcher_hears_of_a_turn_that_did_not_open():
    async def broken(prompt: Message, branch: Branch) -> list[Message]:
        raise ValueError("no")

    mind = Mind(Script())
    mind.admits = broken
    talk = thinking(mind)
    watching = Watching(talk)
    ended = (await collect(talk.say("go")))[-1]
    await watching.until(ended)
    assert isinstance(ended, TurnEnded)
    await talk.close()
    await watching.task


async def test_a_watcher_that_does_not_read_holds_up_nobody_and_misses_only_deltas():
    followers = Followers()
    with followers.joined() as watcher:
        for _ in range(LAG + 10):
            followers.share(TextDelta("x"))
        end = TurnEnded("done")
        followers.share(end)
        followers.close()
        seen = [event async for event in watcher.after(())]
    assert len(seen) == LAG + 1
    assert seen[-1] == end
