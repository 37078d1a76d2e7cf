"""TextTools, for models that can't call tools by an API: they write calls as text, and read results as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from ba_tui.core.events import MessageRestarted, TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Block, Message, StopReason, Text, Thinking, ToolUse, new_id
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ProviderStage, ReplyChunk
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.providers.text_calls.known_tools import KEYS, RequestTools, WrittenCall
from ba_tui.providers.text_calls.markup import LABEL, MARK, kind_of
from ba_tui.providers.text_calls.prompts import (
    NAMELESS,
    Form,
    TextRenderer,
    as_form,
    example,
    offered,
    shortened,
    tool_prompt,
    unread,
    unread_calls,
)
from ba_tui.providers.text_calls.replies import (
    COMMAND,
    DATA,
    DECLARED,
    FOREIGN,
    SHELL,
    ParsedReply,
    Stance,
    read,
    read_command,
)

Voice: TypeAlias = Literal["prose", "thought"]
Verdict: TypeAlias = Literal["hold", "show", "wait"]
LONGEST_START = 400
"""Characters that are held back at most until they are known to begin a call or not."""
_INSIDE = regex(r"\n|<|\[TOOL_|\[T?O?O?L?\Z")
_MARK_BEGUN = regex(r"(?:<[\w|｜/.:=-][^<>\n]*|<|\[[A-Z_]*)\Z")
_FENCE = regex(r"[ \t>]*+(?P<mark>`{3,}|~{3,})(?P<label>[\w.+-]*)[^\n`]*\n")
_FENCE_BEGUN = regex(r"[ \t>]*+(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^\n`]*)\Z")
_JSON = regex(r"""[{\[][\s{\[]{0,9}["'“]?(?P<key>\w{1,60})["'”]?\s{0,9}:""")
_JSON_BEGUN = regex(r"""[{\[][\s{\[]{0,9}["'“]?\w{0,60}["'”]?\s{0,9}\Z""")
_WORD = regex(r"\[?\s{0,9}(?P<word>[A-Za-z_]\w{0,60})(?P<call>\()?")
_LABEL_BEGUN = regex(
    r"[ \t]*+(?:[>*#-]++[ \t]*+)?+(?:`|_{1,2})?+(?P<word>[A-Za-z]{0,12}(?:[ _][A-Za-z]{0,12})?)[ \t\d*_`]{0,8}\Z"
)
_TOKEN_LIKE = regex(r"<[|｜](?:DSML|open|channel|start)[|｜]")
_LIST = "functools["
_TAIL = 120
_BEGINNING = 300
_LABELS = ("action", "thought", "tool", "function", "final answer", "observation")


class Gate:
    """Decides which part of a streamed reply is shown, and which is held back because it may be a call."""

    def __init__(self, known: RequestTools, stance: Stance, *, commands: bool = False) -> None:
        self._known = known
        self._commands = commands
        self._stance: Stance = stance
        self._pieces: list[str] = []
        self._pending = ""
        self._fresh = True
        """Whether the pending text begins a line."""
        self._spans = 0
        """Backticks that were shown of the current line."""
        self._fence = ""
        """The mark of the open block."""
        self._voice: Voice = "prose"
        self._size = 0
        self._shown = 0
        self.beginning = ""
        """How the call begins."""
        self.holding = False
        """Whether a call seems to have begun."""

    @property
    def text(self) -> str:
        """Return all text so far."""
        return "".join(self._pieces)

    def feed(self, text: str) -> list[tuple[Voice, str]]:
        """Return the text that can be shown now, in order."""
        self._pieces.append(text)
        self._size += len(text)
        shown: list[tuple[Voice, str]] = []
        if self.holding:
            self._pending = self._pending[-_TAIL:] + text
            self.beginning += text[: max(0, _BEGINNING - len(self.beginning))]
            return shown
        self._pending += text
        while self._pending and not self.holding and self._step(shown):
            pass
        self.beginning = self._pending[:_BEGINNING] if self.holding else ""
        return shown

    @property
    def rest(self) -> str:
        """Return the text that was not shown."""
        return self.text[self._shown :]

    @property
    def held(self) -> int:
        """Return the number of characters since the call seems to have begun."""
        return self._size - self._shown if self.holding else 0

    def foreign(self) -> int | None:
        """Return the place at which the model begins to write in a tool's name; only the newest piece is searched."""
        found = FOREIGN.search(self._pending) if self.holding else None
        return self._size - len(self._pending) + found.start() if found else None

    def _step(self, shown: list[tuple[Voice, str]]) -> bool:
        """Show some more; return False when more text is needed first."""
        if self._fresh:
            verdict = self._line_start()
            if verdict != "show":
                self.holding = verdict == "hold"
                return False
            self._fresh = False
            return True
        found = _INSIDE.search(self._pending)
        if found is None:
            self._show(len(self._pending), shown)
            return True
        self._show(found.start(), shown)
        if found[0] == "\n":
            self._show(1, shown)
            self._fresh, self._spans = True, 0
            return True
        verdict = "show" if self._fence or self._spans % 2 else self._mark(self._pending)
        if verdict == "show":
            self._show(1, shown)
        self.holding = verdict == "hold"
        return verdict == "show"

    def _show(self, length: int, shown: list[tuple[Voice, str]]) -> None:
        if length:
            text, self._pending = self._pending[:length], self._pending[length:]
            self._shown += length
            self._spans += text.count("`")
            shown.append((self._voice, text))

    def _line_start(self) -> Verdict:
        text = self._pending
        if len(text) > LONGEST_START:
            return "show"
        if self._fence:
            return self._in_fence(text)
        if _FENCE_BEGUN.match(text) or not text.strip(" \t"):
            return "wait"
        if fence := _FENCE.match(text):
            verdict = self._fenced(fence["label"].lower(), text[fence.end() :])
            self._fence = fence["mark"] if verdict == "show" else ""
            return verdict
        if self._commands:
            return "show"
        if text.startswith(_LIST[: len(text)]):
            return "hold" if len(text) >= len(_LIST) else "wait"
        if self._stance == "trusting":
            return "show"
        return self._labelled(text) or self._bare(text.lstrip(" \t"))

    def _in_fence(self, text: str) -> Verdict:
        line, ended, _ = text.partition("\n")
        line = line.strip(" \t>")
        if line.startswith(self._fence) and not line.strip(self._fence[0]):
            if not ended:
                return "wait"
            self._fence = ""
        elif not ended and self._fence.startswith(line):
            return "wait"
        return "show"

    def _fenced(self, label: str, inner: str) -> Verdict:
        """Whether a block with ``label`` that begins with ``inner`` may be a call."""
        if self._commands:
            return "hold" if label in SHELL else "show"
        if self._stance == "trusting" or not (label in DECLARED or label in DATA):
            return "show"
        if label in DECLARED:
            return "hold"
        inner = inner.lstrip()
        if not inner:
            return "wait"
        if LABEL.match(inner):
            return "hold"
        return self._mark(inner) if inner[0] == "<" else self._labelled(inner) or self._bare(inner)

    def _labelled(self, text: str) -> Verdict | None:
        """Return None when the line begins with no label."""
        label = LABEL.match(text)
        if label is None:
            begun = _LABEL_BEGUN.match(text)
            word = begun["word"].lower().replace("_", " ") if begun else "-"
            return "wait" if any(each.startswith(word) or word.startswith(each) for each in _LABELS) else None
        kind = kind_of(label)
        if kind in {"thought", "final"}:
            if self._stance == "asked" and text is self._pending:
                self._voice = "thought" if kind == "thought" else "prose"
                self._pending = text[label.end() :]
                self._shown += label.end()
            return "show"
        if self._stance == "asked":
            return "hold"
        said, ended, _ = text[label.end() :].partition("\n")
        if kind != "action" or not (ended or said.startswith(("{", "["))):
            return "wait" if kind == "action" and len(said) < LONGEST_START // 2 else "show"
        name = _WORD.match(said.strip("`* "))
        return "hold" if not said.strip() or said[0] in "{[`" or (name and self._known.find(name["word"])) else "show"

    def _bare(self, text: str) -> Verdict:
        """Whether a line begins with a call in JSON or Python."""
        if json := _JSON.match(text):
            return "hold" if json["key"] in KEYS or self._known.find(json["key"]) else "show"
        return "wait" if _JSON_BEGUN.match(text) else self._python(text)

    def _python(self, text: str) -> Verdict:
        word = _WORD.match(text)
        if word is None:
            return "show"
        if word["call"]:
            return "hold" if word["word"] in self._known.schemas else "show"
        begun = word.end() == len(text) and any(name.startswith(word["word"]) for name in self._known.schemas)
        return "wait" if begun else "show"

    def _mark(self, text: str) -> Verdict:
        if self._commands:
            return "hold" if text.startswith(COMMAND) else "wait" if COMMAND.startswith(text) else "show"
        if MARK.match(text) or _TOKEN_LIKE.match(text) or (self._stance != "trusting" and self._known.tag.match(text)):
            return "hold"
        return "wait" if _MARK_BEGUN.match(text) and len(text) < LONGEST_START else "show"


LONG = 20_000
"""Characters of a reply from which on it is parsed in a thread."""
_NAME = regex(r"""(?:"(?:tool|name)"\s*:\s*"|<function=|name="|Action:\s*)(?P<name>[A-Za-z_]\w{0,60})""")
_CLOSERS = ("}", "]", ")", ">")
CUT = "It was cut off at the output limit."


class StreamedReply:
    """A streamed reply that may have calls as text: its deltas without them, and its message. ``commands``: the model
    was asked for commands; ``before``: text that was shown already."""

    def __init__(
        self, known: RequestTools, stance: Stance, model: ModelInfo, *, commands: bool = False, before: str = ""
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
        """Return the chunks to show for the next piece of text."""
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

    async def stopped(self) -> ParsedReply | None:
        """Return the calls so far, once the model continues by making up their results; None before that."""
        end = self._gate.foreign()
        if end is None:
            return None
        found = await self._read(self._before + self._gate.text[:end])
        return found if found.calls and not any(call.problem for call in found.calls) else None

    async def read(self, message: Message) -> ParsedReply:
        """Parse the whole answer."""
        self._whole = message.text
        return await self._read(message.text)

    @property
    def tagged(self) -> bool:
        """Whether a call is between the tags that most families write."""
        return "<tool_call>" in (self._whole or self._gate.text)

    def rest(self) -> Sequence[ReplyChunk]:
        """Return the held back text of an answer without calls."""
        return [TextDelta(self._gate.rest)] if self._gate.rest else []

    def ending(self, found: ParsedReply, message: Message | None) -> Iterator[ReplyChunk]:
        """Return the last chunks of an answer: the text that is not shown yet, and the message with real calls. If a
        part of a call was shown as prose, the answer is shown again. ``message``: the vendor's message; None when it
        was not read to its end."""
        if not found.calls:
            yield from self.rest()
        elif (shown := "".join(self._shown).strip()) and shown != found.prose.strip():
            yield MessageRestarted()
            if found.prose.strip():
                yield TextDelta(found.prose.strip())
        yield self._message(found, message)

    def _message(self, found: ParsedReply, message: Message | None) -> Message:
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

    def _call(self, call: WrittenCall, id: str, *, cut: bool) -> list[Block]:
        problem = CUT if cut and not call.source.endswith(_CLOSERS) else call.problem
        if not problem or (call.unknown and problem is call.problem):
            # A name that is unknown here may be a tool's that is not listed; otherwise the loop reports it.
            given = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
            return [ToolUse(id, call.name, given)]
        return [ToolUse(id, call.name or NAMELESS, {}, call.source), unread(id, problem, call.source)]

    async def _read(self, text: str) -> ParsedReply:
        def reader() -> ParsedReply:
            return read_command(text, self._known) if self._commands else read(text, self._known, self._stance)

        return await asyncio.to_thread(reader) if len(text) > LONG else reader()


def _call_id() -> str:
    return f"call_{new_id()[:24]}"


Examples: TypeAlias = Callable[[Form, Sequence[Tool], ModelInfo], Sequence[Message]]

FORGIVEN = 2
"""Replies in a row with unreadable calls. The next one is taken as an answer."""


class TextTools(ProviderStage):
    """Sends requests without tools: the system prompt describes them, in ``form`` ("text": that of the model's family),
    and replies are parsed for calls. ``examples`` makes rounds that precede the conversation."""

    def __init__(self, provider: Provider, form: str, examples: Examples = example) -> None:
        super().__init__(provider)
        self._examples = examples
        self.form: Form = as_form(form, provider.model)
        self._rendering = TextRenderer(self.form, provider.model)
        self._tools: Sequence[Tool] = ()
        self._known = RequestTools(())
        self._prompt = ""
        self._example: Sequence[Message] = ()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self._learn(request.tools)
        hearing = StreamedReply(self._known, "asked", self.model, commands=self.form == "command")
        async with self._answer(self._as_text(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextDelta(text=text):
                        for each in hearing.delta(text):
                            yield each
                        if found := await hearing.stopped():
                            for each in hearing.ending(found, None):
                                yield each
                            return
                    case Message():
                        found = self._judged(await hearing.read(chunk), request)
                        for each in hearing.ending(found, chunk):
                            yield each
                        return
                    case _:
                        yield chunk

    def _judged(self, found: ParsedReply, request: ModelRequest) -> ParsedReply:
        """Return the reply with its valid calls: none where forbidden, no unreadable one after FORGIVEN others."""
        broken = any(call.problem for call in found.calls)
        if found.calls and (not request.call_tools or (broken and _unread_in_a_row(request.messages) >= FORGIVEN)):
            words = [found.prose, *(call.source for call in found.calls if broken and request.call_tools)]
            return ParsedReply("\n\n".join(filter(None, words)) or found.calls[0].source)
        return found

    def _learn(self, tools: Sequence[Tool]) -> None:
        if tools is not self._tools:
            self._tools = tools
            known = offered(self.form, tools)
            self._known = RequestTools(known)
            self._prompt = tool_prompt(self.form, known, short=shortened(self.model)) if known else ""
            self._example = self._examples(self.form, known, self.model) if known else ()

    def _as_text(self, request: ModelRequest) -> ModelRequest:
        # Tools come first: they are the same in every folder and on every day, so a server's cache can keep them.
        system = "\n\n".join(filter(None, (self._prompt, request.system)))
        return ModelRequest(system, [*self._example, *self._rendering.messages(request.messages)], ())


def _unread_in_a_row(messages: Sequence[Message]) -> int:
    """Return how many of the newest answers had nothing but unreadable calls."""
    count = 0
    for message in reversed(messages):
        if message.role == "assistant":
            if not message.calls or len(unread_calls(message)) < len(message.calls):
                return count
            count += 1
    return count
