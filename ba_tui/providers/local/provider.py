"""A provider for a model in a file on this machine: short prompts, few tools, and calls that can't be malformed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.errors import BaError
from ba_tui.core.messages import Message, Text, user
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.local.processes import LocalAddress, LocalPlace, LocalProcesses
from ba_tui.providers.local.shortening import SMALL_WINDOW, few_tools, short_prompt
from ba_tui.providers.local.steps import answer_due, call_needed, notes_first, read_lines
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.text_calls.forms import Form, call_text, final_text
from ba_tui.providers.text_calls.prompting import example
from ba_tui.providers.text_calls.text_tools import TextTools
from ba_tui.providers.transfers import DIRECT, Transfer
from ba_tui.providers.wire.shapes import fields, items, text_of
from ba_tui.resources import bundled
from ba_tui.settings import LocalSettings

# A llama.cpp grammar of what a local model may write: a tool call by its schema, or an answer, in the form of ReAct.

KEPT = frozenset({"type", "enum", "const", "items", "required", "minimum", "maximum", "anyOf", "oneOf"})
"""Words of a JSON schema that are enforced; the others are checked when the call is made."""
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
FileLines: TypeAlias = Mapping[str, Sequence[str]]
NOTHING_READ: FileLines = {}
EDITING, CHOSEN = "edit_file", ("path", "old_string")
"""The tool whose arguments are chosen from what was read."""
THOUGHT = "[^\\n]{1,240}"
DEEPEST = 12
_THOUGHT = f'thought: "Thought: " /{THOUGHT}/ "\\n"'
_FINAL = 'final: "Final Answer: " /(.|\\n)+/'
ANSWER = "\n".join(("%llguidance {}", "start: thought? final", _FINAL, _THOUGHT))
"""The grammar of a reply that is no call."""


def call_schema(tools: Sequence[Tool], lines: FileLines = NOTHING_READ) -> dict[str, Any]:
    """The JSON schema of a call of any of ``tools``. ``lines``: what may be replaced in which file, once one was read:
    a small model that copies text makes mistakes, and one that chooses a line can't."""
    calls = [
        _object({"tool": {"const": tool.name}, "args": args}, ("tool", "args"))
        for tool in tools
        for args in _arguments(tool, lines)
    ]
    return {"x-guidance": {**SPACING, "lenient": True}, **(calls[0] if len(calls) == 1 else {"anyOf": calls})}


def call_grammar(tools: Sequence[Tool], *, needed: bool = False, lines: FileLines = NOTHING_READ) -> str:
    """The grammar of a reply of a model that may call ``tools``; ``needed``: it has to. For ``lines`` see above."""
    schema = json.dumps(call_schema(tools, lines), ensure_ascii=False)
    rules = ("start: thought? call",) if needed else ("start: thought? (call | final)", _FINAL)
    return "\n".join(
        (
            "%llguidance {}",
            *rules,
            _THOUGHT,
            'call: "Action: " arguments "\\n"?',
            f"arguments: %json {schema}",
        )
    )


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
    """``schema`` with the words that are enforced; nothing but what it names may stand in an object."""
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
    """``tools`` as a small model is told of them. A call that fits these fits the real ones."""
    known = fields(_read("tools"))
    return [_told(tool, fields(known[tool.name])) if tool.name in known else tool for tool in tools]


def examples(form: Form, tools: Sequence[Tool], model: ModelInfo) -> Sequence[Message]:
    """Rounds of questions, calls and answers; those that need a tool beyond ``tools`` are left out."""
    names = {tool.name for tool in tools}
    rounds = [fields(each) for each in items(_read("examples"))]
    return [message for each in rounds if _uses(each) <= names for message in _round(each, form, model.id)]


def _told(tool: Tool, words: Mapping[str, Any]) -> Tool:
    properties = fields(tool.input_schema.get("properties"))
    required = [name for name in items(words.get("arguments")) if name in properties]
    named = [*required, *(name for name in items(words.get("optional")) if name in properties)]
    if not set(items(tool.input_schema.get("required"))) <= set(required):
        # Its arguments have changed since these words were written: it is told as it is.
        return tool
    schema = {
        "type": "object",
        "properties": {name: properties[name] for name in named},
        "required": required,
        "additionalProperties": False,
    }
    facts = replace(tool.facts, examples=tuple(fields(each) for each in items(words.get("examples"))))
    return replace(tool, description=text_of(words.get("about")), input_schema=schema, facts=facts)


def _uses(example: Mapping[str, Any]) -> set[str]:
    return {text_of(fields(step).get("tool")) for step in items(example.get("steps"))}


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
"""Where none is set: small models lose their way at llama.cpp's own 0.8."""
MOST_KEPT = 8
"""Grammars whose providers are kept: each has the body that it sent last."""


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
        """Those of the last request, and those of them that the model is told of."""

    @property
    def model(self) -> ModelInfo:
        return self._llama.model

    def connect(self) -> None:
        self._llama.connect()

    async def close(self) -> None:
        await self._text.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
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
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._text.stream(short))) as chunks:
            async for chunk in chunks:
                yield chunk


class LlamaCpp:
    """core.provider.Provider: the model as llama.cpp has it, without tools, held to the grammar of those allowed."""

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
        """By their grammar; each keeps the body that it sent last."""
        self._address: LocalAddress | None = None
        self._loading: asyncio.Task[LocalAddress] | None = None
        processes.enter(place)

    def allow(self, grammar: str) -> None:
        """What the next answers may be; empty for free text."""
        self._grammar = grammar

    def connect(self) -> None:
        """See core.provider.Provider: loads the model while the person still types."""
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
        """See core.provider.Provider."""
        address = await self._loaded()
        if address != self._address:
            await self._forget()
            self._address = address
        async with self._processes.watched(self._place):
            answer = cast("AsyncGenerator[ReplyChunk, None]", (await self._provider(address)).stream(request))
            async with aclosing(answer) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _loaded(self) -> LocalAddress:
        begun, self._loading = self._loading, None
        if begun:
            await begun
        # Again, as the process may have ended since then.
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
