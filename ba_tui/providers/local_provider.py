"""A provider for model files on this machine: short prompts, few tools, and a grammar that prevents malformed calls."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.messages import Message, Text, ToolOutput, user
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk, answer_of
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.providers.connection import DIRECT, Transfer
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.local_files import (
    SMALL_WINDOW,
    LocalAddress,
    LocalPlace,
    LocalProcesses,
    few_tools,
    short_prompt,
)
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.shapes import fields, items, text_of
from ba_tui.providers.text_calls.prompts import Form, call_text, example, final_text
from ba_tui.providers.text_calls.text_tools import TextTools
from ba_tui.resources import bundled
from ba_tui.settings import LocalSettings

# When a small model must call a tool: if it may, it answers from its examples or invents an answer.

READING, SHELL = "read_file", "shell"
MOST_LINES = 200
"""Lines of files that a grammar offers for replacement."""
_NUMBERED = regex(r"(?m)^ *\d+\t(.*)$")
TRIES = 2
"""Failed calls in a row after which the model may stop calling."""
_NAMES_SOMETHING = regex(
    r"""(?ix)
    (?<![\w@/.]) (?: [\w-]{2,}\.[a-z]\w{0,5} | [\w-]\.[a-z]\w{1,5} ) \b (?!\.?\w)   # notes.txt, a.py; not e.g.
    | (?<![\w/:])[\w.~-]*/[\w./-]+                        # src/, ./run
    | `[^`\n]+`
    | \d\s*[-+*/^×÷%]\s*\d                                # a sum
    | \b(?:files?|folders?|director(?:y|ies)|workspace|repo(?:sitory)?|script|command|run|execute)\b
    """
)


def call_needed(messages: Sequence[Message]) -> bool:
    """Return True before the first call for a prompt that names a file, a command or a sum, and after a failed call."""
    failed = 0
    for message in reversed(messages):
        outputs = [block for block in message.blocks if isinstance(block, ToolOutput)]
        if outputs:
            if not outputs[-1].is_error:
                return failed > 0
            failed += 1
            if failed >= TRIES:
                return False
        elif message.role == "user" and not message.hidden and (asked := message.own_text.strip()):
            return failed > 0 or _NAMES_SOMETHING.search(asked) is not None
    return False


def answer_due(messages: Sequence[Message]) -> bool:
    """Return True after the same call succeeded twice in a row: a third would stop the turn."""
    calls: list[tuple[str, object]] = []
    for message in reversed(messages):
        outputs = [block for block in message.blocks if isinstance(block, ToolOutput)]
        if message.calls:
            calls += [(call.name, call.input) for call in reversed(message.calls)]
        elif not outputs or any(output.is_error for output in outputs):
            return False
        if len(calls) > 1:
            return calls[0] == calls[1]
    return False


def read_lines(messages: Sequence[Message]) -> Mapping[str, Sequence[str]]:
    """Return the unique lines of each file that was read and not passed on since; none if more than MOST_LINES."""
    calls = {call.id: call for message in messages for call in message.calls}
    lines: dict[str, Sequence[str]] = {}
    for message in messages:
        for output in message.blocks:
            if not isinstance(output, ToolOutput) or output.is_error or not (call := calls.get(output.tool_use_id)):
                continue
            path = str(call.input.get("path", ""))
            if call.name == READING:
                said = Counter(_NUMBERED.findall(output.content))
                lines[path] = tuple(line for line, count in said.items() if count == 1 and line.strip())
            elif path in lines:
                del lines[path]
            elif call.name == SHELL:
                # The call may have changed any of them.
                lines.clear()
    return {path: said for path, said in lines.items() if said} if sum(map(len, lines.values())) <= MOST_LINES else {}


def notes_first(messages: Sequence[Message]) -> Sequence[Message]:
    """Return ``messages`` with ba's notes before their prompt: a small model follows the text that it read last."""
    ordered: list[Message] = []
    for message in messages:
        at = len(ordered)
        if message.hidden and message.role == "user" and at and _is_prompt(ordered[-1]):
            at -= 1
        ordered.insert(at, message)
    return ordered


def _is_prompt(message: Message) -> bool:
    return (
        message.role == "user"
        and not message.hidden
        and not any(isinstance(block, ToolOutput) for block in message.blocks)
    )


# A llama.cpp grammar of a local model's replies: a tool call by its schema, or an answer, in the form of ReAct.

KEPT = frozenset({"type", "enum", "const", "items", "required", "minimum", "maximum", "anyOf", "oneOf"})
"""Keywords of JSON Schema that the grammar enforces; the others are checked when the call is made."""
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
FileLines: TypeAlias = Mapping[str, Sequence[str]]
NOTHING_READ: FileLines = {}
EDITING, CHOSEN = "edit_file", ("path", "old_string")
"""The tool whose arguments are chosen from the lines that were read."""
THOUGHT = "[^\\n]{1,240}"
DEEPEST = 12
_THOUGHT = f'thought: "Thought: " /{THOUGHT}/ "\\n"'
_FINAL = 'final: "Final Answer: " /(.|\\n)+/'
ANSWER = "\n".join(("%llguidance {}", "start: thought? final", _FINAL, _THOUGHT))
"""The grammar of a reply without a call."""


def call_schema(tools: Sequence[Tool], lines: FileLines = NOTHING_READ) -> dict[str, Any]:
    """Return the JSON schema of a call of any of ``tools``. ``lines``: the lines that may be replaced in each file: a
    small model makes mistakes when it copies text, and none when it chooses a line."""
    calls = [
        _object({"tool": {"const": tool.name}, "args": args}, ("tool", "args"))
        for tool in tools
        for args in _arguments(tool, lines)
    ]
    return {"x-guidance": {**SPACING, "lenient": True}, **(calls[0] if len(calls) == 1 else {"anyOf": calls})}


def call_grammar(tools: Sequence[Tool], *, needed: bool = False, lines: FileLines = NOTHING_READ) -> str:
    """Return the grammar of a reply that may call ``tools``, or must if ``needed``. ``lines`` as above."""
    schema = json.dumps(call_schema(tools, lines), ensure_ascii=False)
    rules = ("start: thought? call",) if needed else ("start: thought? (call | final)", _FINAL)
    call = ('call: "Action: " arguments "\\n"?', f"arguments: %json {schema}")
    return "\n".join(("%llguidance {}", *rules, _THOUGHT, *call))


def _arguments(tool: Tool, lines: FileLines) -> Sequence[dict[str, Any]]:
    args = _plain(tool.input_schema, DEEPEST)
    properties = fields(args.get("properties"))
    if tool.name != EDITING or not lines or not {*CHOSEN} <= properties.keys():
        return [args]
    return [
        {
            **args,
            "properties": {**properties, **dict(zip(CHOSEN, ({"const": path}, {"enum": list(said)}), strict=True))},
        }
        for path, said in lines.items()
    ]


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _plain(schema: object, depth: int) -> dict[str, Any]:
    """Return ``schema`` with the enforced keywords only; objects may have only the properties that it names."""
    whole = fields(schema)
    if not depth:
        return {}
    kept: dict[str, Any] = {key: value for key, value in whole.items() if key in KEPT}
    for key in ("anyOf", "oneOf"):
        if key in kept:
            kept[key] = [_plain(each, depth - 1) for each in items(kept[key])]
    if "items" in kept:
        kept["items"] = _plain(kept["items"], depth - 1)
    if "properties" in whole:
        named = {name: _plain(part, depth - 1) for name, part in fields(whole["properties"]).items()}
        kept |= _object(named, [name for name in items(whole.get("required")) if name in named])
    return kept


def told_tools(tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return ``tools`` as they are described to a small model. A call that fits these descriptions fits the tools."""
    known = fields(_read("tools"))
    return [_told(tool, fields(known[tool.name])) if tool.name in known else tool for tool in tools]


def examples(form: Form, tools: Sequence[Tool], model: ModelInfo) -> Sequence[Message]:
    """Return rounds of questions, calls and answers, without those that need a tool outside ``tools``."""
    names = {tool.name for tool in tools}
    return [
        message
        for each in map(fields, items(_read("examples")))
        if {text_of(fields(step).get("tool")) for step in items(each.get("steps"))} <= names
        for message in _round(each, form, model.id)
    ]


def _told(tool: Tool, words: Mapping[str, Any]) -> Tool:
    properties = fields(tool.input_schema.get("properties"))
    required = [name for name in items(words.get("arguments")) if name in properties]
    named = [*required, *(name for name in items(words.get("optional")) if name in properties)]
    if not set(items(tool.input_schema.get("required"))) <= set(required):
        # The tool's arguments changed after the short description was written: use its own.
        return tool
    schema = _object({name: properties[name] for name in named}, required)
    facts = replace(tool.facts, examples=tuple(fields(each) for each in items(words.get("examples"))))
    return replace(tool, description=text_of(words.get("about")), input_schema=schema, facts=facts)


def _round(example: Mapping[str, Any], form: Form, model: str) -> Sequence[Message]:
    asked, messages = f"(An example) {text_of(example.get('ask'))}", list[Message]()
    for step in map(fields, items(example.get("steps"))):
        call = call_text(form, text_of(step.get("tool")), fields(step.get("args")))
        messages += [user(asked), _said(f"{_thought(step)}{call}", model)]
        asked = f"Observation: {text_of(step.get('seen'))}"
    answer = final_text(form, text_of(example.get("answer")))
    return [*messages, user(asked), _said(f"{_thought(example)}{answer}", model)]


def _thought(step: Mapping[str, Any]) -> str:
    return f"Thought: {step['thought']}\n" if step.get("thought") else ""


def _said(text: str, model: str) -> Message:
    return Message("assistant", (Text(text),), model=model, origin="assistant")


@cache
def _read(name: str) -> Any:
    import yaml  # noqa: PLC0415 - not before a local model is asked

    return yaml.safe_load((bundled("config") / "prompts" / "local" / f"{name}.yaml").read_text("utf-8"))


TEMPERATURE = 0.1
"""Used when none is set: small models get confused at llama.cpp's default of 0.8."""
MOST_KEPT = 8
"""Grammars whose providers are kept, each with its last request body."""


class LocalProvider:
    """core.provider.Provider. ``options`` are further fields of each request, as the API names them."""

    def __init__(
        self,
        model: ModelInfo,
        processes: LocalProcesses,
        settings: LocalSettings,
        options: Mapping[str, Any] | None = None,
        transfer: Transfer = DIRECT,
    ) -> None:
        place = LocalPlace(Path(model.name), model.window, settings.threads)
        self._small = model.window <= SMALL_WINDOW
        self._llama = LlamaCpp(model, processes, place, options or {}, transfer)
        self._text = TextTools(self._llama, "react", examples if self._small else example)
        self._few = settings.tools if self._small else ()
        self._tools: tuple[Sequence[Tool], Sequence[Tool]] = ((), ())
        """The tools of the last request, and those of them that are described to the model."""

    @property
    def model(self) -> ModelInfo:
        return self._llama.model

    def connect(self) -> None:
        self._llama.connect()

    async def close(self) -> None:
        await self._text.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        if request.tools is not self._tools[0]:
            few = few_tools(request.tools, self._few)
            self._tools = (request.tools, told_tools(few) if self._small else few)
        tools = self._tools[1]
        if not request.call_tools or not tools:
            self._llama.allow("")
        elif self._small and not request.must_call and answer_due(request.messages):
            self._llama.allow(ANSWER)
        elif self._small:
            needed, lines = request.must_call or call_needed(request.messages), read_lines(request.messages)
            self._llama.allow(call_grammar(tools, needed=needed, lines=lines))
        else:
            self._llama.allow(call_grammar(tools, needed=request.must_call))
        system = short_prompt(request.system) if self._few and request.tools else request.system
        messages = notes_first(request.messages) if self._small else request.messages
        short = ModelRequest(system, messages, tools, request.call_tools)
        async with answer_of(self._text, short) as chunks:
            async for chunk in chunks:
                yield chunk


class LlamaCpp:
    """The model as llama.cpp serves it, without tools, restricted to the grammar that ``allow`` sets."""

    def __init__(
        self,
        model: ModelInfo,
        processes: LocalProcesses,
        place: LocalPlace,
        options: Mapping[str, Any],
        transfer: Transfer,
    ) -> None:
        self.model = model
        self._processes = processes
        self._place = place
        self._options = {"max_tokens": model.max_output, "temperature": TEMPERATURE, "return_progress": True, **options}
        self._transfer = transfer
        self._grammar = ""
        self._providers: dict[str, OpenAIProvider] = {}
        """By grammar; each keeps its last request body."""
        self._address: LocalAddress | None = None
        self._loading: asyncio.Task[LocalAddress] | None = None
        processes.enter(place)

    def allow(self, grammar: str) -> None:
        """Set the grammar of the next answers; empty for free text."""
        self._grammar = grammar

    def connect(self) -> None:
        """Load the model while the user is typing."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._processes.load(self._place), name="local model")

    async def close(self) -> None:
        if self._loading:
            self._loading.cancel()
            with suppress(asyncio.CancelledError, BaError):
                await self._loading
        await self._forget()
        self._processes.leave(self._place)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        address = await self._loaded()
        if address != self._address:
            await self._forget()
            self._address = address
        async with self._processes.watched(self._place), answer_of(await self._provider(address), request) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _loaded(self) -> LocalAddress:
        begun, self._loading = self._loading, None
        if begun:
            await begun
        # Checked again: the process may have ended since then.
        return await self._processes.load(self._place)

    async def _provider(self, address: LocalAddress) -> OpenAIProvider:
        grammar = self._grammar
        if grammar not in self._providers:
            while len(self._providers) >= MOST_KEPT:
                await self._providers.pop(next(iter(self._providers))).close()
            options = {**self._options, "grammar": grammar} if grammar else self._options
            self._providers[grammar] = OpenAIProvider(
                self.model,
                api_key=BoundKey(address.key, address.url),
                base_url=address.url,
                options=options,
                transfer=self._transfer,
            )
        return self._providers[grammar]

    async def _forget(self) -> None:
        for provider in self._providers.values():
            await provider.close()
        self._providers.clear()
