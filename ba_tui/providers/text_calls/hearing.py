"""One reply that may hold calls as text: its deltas without them while it streams, and the message it comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ba_tui.core.events import MessageRestarted, TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Block, Message, StopReason, Text, Thinking, ToolUse, new_id
from ba_tui.core.provider import ModelInfo, ReplyChunk
from ba_tui.core.text.patterns import regex
from ba_tui.providers.text_calls.commands import read_command
from ba_tui.providers.text_calls.gate import Gate
from ba_tui.providers.text_calls.known import Known, Written
from ba_tui.providers.text_calls.reading import Reading, Stance, read
from ba_tui.providers.text_calls.rendering import NAMELESS, unread

LONG = 20_000
"""Characters from which on a reply is read in a thread of its own."""
_NAME = regex(r"""(?:"(?:tool|name)"\s*:\s*"|<function=|name="|Action:\s*)(?P<name>[A-Za-z_]\w{0,60})""")
_CLOSERS = ("}", "]", ")", ">")
CUT = "It was cut off at the output limit."


class Hearing:
    """``stance`` says what counts as a call. ``commands``: the model was asked for commands instead of calls.
    ``before``: what of the reply was shown already."""

    def __init__(
        self, known: Known, stance: Stance, model: ModelInfo, *, commands: bool = False, before: str = ""
    ) -> None:
        self._before = before
        self._whole = ""
        self._shown = [before]
        self._known = known
        self._stance: Stance = stance
        self._model = model
        self._commands = commands
        self._gate = Gate(known, stance, commands=commands)
        self._id = _call_id()
        self._name = ""

    def delta(self, text: str) -> Sequence[ReplyChunk]:
        """What people may see of the next piece of text, or that a call is being written."""
        chunks: list[ReplyChunk] = []
        for voice, piece in self._gate.feed(text):
            chunks.append(ThinkingDelta(piece) if voice == "thought" else TextDelta(piece))
            if voice == "prose":
                self._shown.append(piece)
        if held := self._gate.held:
            if not self._name and (found := _NAME.search(self._gate.beginning)):
                self._name = found["name"]
            if self._name:
                chunks.append(ToolInputDelta(self._id, self._name, held))
        return chunks

    async def stopped(self) -> Reading | None:
        """The calls so far, once the model goes on by making up their results; None while it does not."""
        end = self._gate.foreign()
        if end is None:
            return None
        found = await self._read(self._before + self._gate.text[:end])
        return found if found.calls and not any(call.problem for call in found.calls) else None

    async def read(self, message: Message) -> Reading:
        """What the whole answer says."""
        self._whole = message.text
        return await self._read(message.text)

    @property
    def tagged(self) -> bool:
        """Whether a call stands between the tags that most families write."""
        return "<tool_call>" in (self._whole or self._gate.text)

    def rest(self) -> Sequence[ReplyChunk]:
        """What was held back of an answer that came to no call."""
        return [TextDelta(self._gate.rest)] if self._gate.rest else []

    def ending(self, found: Reading, message: Message | None) -> Iterator[ReplyChunk]:
        """The last chunks of an answer: what is not shown yet, and the whole with its calls as such. Where a part of a
        call was shown as prose, the answer is shown anew. ``message``: as the vendor's adapter has it; None when it was
        left before its end."""
        if not found.calls:
            yield from self.rest()
        elif (shown := "".join(self._shown).strip()) and shown != found.prose.strip():
            yield MessageRestarted()
            if found.prose.strip():
                yield TextDelta(found.prose.strip())
        yield self._message(found, message)

    def _message(self, found: Reading, message: Message | None) -> Message:
        blocks: list[Block] = [block for block in message.blocks if not isinstance(block, Text)] if message else []
        if found.thought:
            blocks.append(Thinking(found.thought))
        if found.prose.strip():
            blocks.append(Text(found.prose.strip()))
        cut = message is not None and message.stop == "max_tokens"
        for number, call in enumerate(found.calls):
            last = number == len(found.calls) - 1
            blocks += self._call(call, self._id if number == 0 else _call_id(), cut=cut and last)
        whole = message or Message("assistant", (), model=self._model.id, origin="assistant")
        stop: StopReason | None = "max_tokens" if cut else "tool_use" if found.calls else whole.stop
        return replace(whole, blocks=tuple(blocks), stop=stop)

    def _call(self, call: Written, id: str, *, cut: bool) -> list[Block]:
        problem = CUT if cut and not call.source.endswith(_CLOSERS) else call.problem
        if not problem or (call.unknown and problem is call.problem):
            # A name that is unknown here may still be a tool's that is not listed; if not, the loop says so.
            given = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
            return [ToolUse(id, call.name, given)]
        return [ToolUse(id, call.name or NAMELESS, {}, call.source), unread(id, problem, call.source)]

    async def _read(self, text: str) -> Reading:
        def reader() -> Reading:
            return read_command(text, self._known) if self._commands else read(text, self._known, self._stance)

        return await asyncio.to_thread(reader) if len(text) > LONG else reader()


def _call_id() -> str:
    return f"call_{new_id()[:24]}"
