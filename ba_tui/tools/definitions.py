"""Tools as data: what a model reads of a tool, its fixed facts, and the name of the code that runs it.

Each tool has a YAML file. Only ``description`` and ``input_schema`` are required::

    body: ba_tui.tools.builtin.files:read_file_tool   # makes the tool; imported at the first call
    name: read_file                                   # that of the file by default
    effect: write                                     # a value of Effect; read by default
    timeout: 60                                       # seconds; null for none
    idempotent: true
    facts: {category: files, target: path}            # see ToolFacts; functions as module:name
    shorten: ba_tui.some.module:function
    examples: [{path: a.txt}]
    description: Read a file.
    input_schema: {type: object, ...}

A function of ``facts`` may be ``body`` instead of a name: then it is the one of the tool that the body makes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.effects import Effect
from ba_tui.core.errors import UsageError, off_loop
from ba_tui.core.results import Display, OutputLevel, ToolResult
from ba_tui.core.tool import Call, Concern, Guard, Preview, Run, Shorten, Tool, ToolFacts
from ba_tui.core.values import Once, frozen, late

FUNCTIONS = frozenset({"paths_of", "target_of", "dialect_of", "below"})
"""Fields of ToolFacts that hold a function."""
BODY = "body"
LEVEL = "output_level"
LEVELS: tuple[OutputLevel, ...] = get_args(OutputLevel)
CHOICE = {"enum": list(LEVELS), "description": "How much of a long result to give; default standard"}


@frozen
class Definition:
    """One tool as data. ``body`` names a function that makes the tool from this value and the services it needs."""

    description: str
    input_schema: Mapping[str, Any]
    name: str = ""
    body: str = ""
    effect: Effect = Effect.READ
    timeout: float | None = 120
    idempotent: bool | None = None
    facts: ToolFacts = field(default_factory=ToolFacts)
    shorten: Shorten | None = None

    def tool(
        self,
        run: Run,
        *,
        preview: Preview | None = None,
        concern: Concern | None = None,
        so_far: Callable[[str], str] = str,
    ) -> Tool:
        """Return the tool with its functions, for bodies."""
        return Tool(
            self.name,
            self.description,
            self.input_schema,
            run,
            self.effect,
            self.timeout,
            self.facts,
            preview,
            self.idempotent,
            self.shorten,
            so_far,
            concern,
        )

    def late(self, *services: object) -> Tool:
        """Return the tool; its body is imported at the first call. A service that is a Once is made then."""
        return late_tool(self.tool(_never), partial(_applied, self.body, self, *services))


def wrapped(tool: Tool, by: str, *services: object) -> Tool:
    """Return the tool that ``by`` (``module:function``) makes of ``tool`` and services at the first call."""
    return late_tool(tool, partial(_applied, by, tool, *services))


def _applied(name: str, *given: object) -> Tool:
    return cast("Tool", late(name)(*(each() if isinstance(each, Once) else each for each in given)))


def late_guard(make: Callable[[Collection[str]], Guard]) -> Guard:
    """Return the guard that ``make`` returns at the first call of a tool. It gets the names of the tools that write,
    which may grow."""
    writers: set[str] = set()
    made = Once(lambda: make(writers))

    def guard(tool: Tool) -> Tool:
        if tool.effect is Effect.WRITE:
            writers.add(tool.name)
        schema = with_level(tool.input_schema) if tool.facts.bulky else tool.input_schema
        return late_tool(replace(tool, input_schema=schema), lambda: made()(tool))

    return guard


async def _never(args: Mapping[str, Any], call: Call) -> ToolResult:
    raise NotImplementedError


def late_tool(tool: Tool, make: Callable[[], Tool]) -> Tool:
    """Return ``tool`` with the functions of the tool that ``make`` returns; it is called once, at the first call."""
    made = Once(make)

    async def whole() -> Tool:
        # Importing takes longer than an interface may be blocked.
        return made.made or await off_loop(made)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return await (await whole()).run(args, call)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        asked = (await whole()).preview
        return await asked(args) if asked else None

    async def concern(args: Mapping[str, Any]) -> str:
        asked = (await whole()).concern
        return await asked(args) if asked else ""

    def so_far(text: str) -> str:
        return made().so_far(text)

    def of_body(name: str, args: Mapping[str, Any]) -> Any:
        return getattr(made().facts, name)(args)

    own = {name: partial(of_body, name) for name in FUNCTIONS if getattr(tool.facts, name) is _body}
    facts = replace(tool.facts, **own) if own else tool.facts
    return replace(tool, run=run, preview=preview, concern=concern, so_far=so_far, facts=facts)


def load_definitions(folder: Path) -> dict[str, Definition]:
    """Load every ``<tool>.yaml`` of ``folder``, by the tool's name.

    Raises:
        UsageError: a file cannot be read, lacks ``description`` or ``input_schema``, or has a wrong value.
    """
    found = {path.stem: _definition(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.yaml"))}
    if not found:
        raise UsageError(f"No tool descriptions in {folder}.", "Restore the files or reinstall.")
    return found


@lru_cache(maxsize=256)
def _definition(path: Path, changed: int) -> Definition:
    """Read a file once for all sessions of the process, and again when ``changed`` differs. Raises UsageError."""
    import yaml  # noqa: PLC0415 - heavy, and needed only to build an agent

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content: Any = yaml.load(path.read_text("utf-8"), loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "Restore the file or reinstall.") from error
    try:
        return _read(path.stem, content)
    except (TypeError, ValueError, KeyError) as error:
        wrong = f"{path} needs description and input_schema, and only known keys: {error}."
        raise UsageError(wrong, "Restore the file or reinstall.") from error


def _read(name: str, content: Mapping[str, Any]) -> Definition:
    """Return the content of a file. Raises TypeError, ValueError or KeyError."""
    given = dict(content)
    schema = given.pop("input_schema")
    if schema["type"] != "object":
        raise ValueError(schema)
    facts: dict[str, Any] = {**given.pop("facts", {}), "examples": given.pop("examples", None) or []}
    if "effect" in given:
        given["effect"] = Effect(given["effect"])
    if "shorten" in given:
        given["shorten"] = late(given["shorten"])
    given["facts"] = ToolFacts(**{key: _fact(key, value) for key, value in facts.items()})
    return Definition(str(given.pop("description")).strip(), schema, given.pop("name", name), **given)


def _fact(name: str, value: Any) -> Any:
    if name in FUNCTIONS:
        return _body if value == BODY else late(value)
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _body(args: Mapping[str, Any]) -> Any:
    """Mark a function that ``late_tool`` replaces with the one of the tool that the body makes."""
    raise NotImplementedError


def with_level(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``schema`` with the parameter for a level; unchanged if the tool has a parameter of that name."""
    properties = schema.get("properties", {})
    return schema if LEVEL in properties else {**schema, "properties": {**properties, LEVEL: CHOICE}}
