"""Definitions of a server's tools, made fit for models and users, and those that were approved, kept between sessions.

Checking many schemas is slow, so call it in a thread. There is one file per server, named by a hash of its identity: a
different command, address, source file or project is a different server.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from ba_tui.core.ports.mcp import PromptArgument, RemotePrompt, RemoteResource, RemoteTool, ServerConfig
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_in, legible, paintable
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.core.values import frozen
from ba_tui.resources import save_whole

# Providers refuse choices and references at the top of a schema. The properties of all choices are merged into one
# list,
# only what every choice requires is required, so each call that the server accepts stays possible.

Schema: TypeAlias = dict[str, Any]
SCHEMA_BYTES = 40_000
DEEPEST = 20
MOST_PARTS = 300
"""Maximum choices and references at the top of a schema."""
_PROPERTY = regex(r"[A-Za-z0-9_.-]{1,64}")
_COMBINED = ("$ref", "oneOf", "anyOf", "allOf", "not", "if", "then", "else")
"""Keys that providers refuse at the top of a schema. The server still checks them."""


class _Unusable(Exception):
    """Why a schema can't be converted to a list of properties."""


def usable_schema(given: Any) -> tuple[dict[str, Any], str, list[str]]:
    """Return the schema of a tool's arguments for models, the reason if it is unusable, and remarks."""
    if not isinstance(given, Mapping):
        return {}, "its parameters have no schema", []
    size = len(canonical(cast("Mapping[str, Any]", given)))
    if size > SCHEMA_BYTES:
        return {}, f"its schema has {byte_size(size)}, and ba takes {byte_size(SCHEMA_BYTES)}", []
    hidden: list[str] = []
    try:
        schema = cast("dict[str, Any]", _clean(given, hidden, 0))
    except RecursionError:
        return {}, f"its schema is nested more than {DEEPEST} levels", []
    remarks = [f"in its schema hidden characters were removed ({len(hidden)} places)"] if hidden else []
    if schema.setdefault("type", "object") != "object":
        return {}, "its schema describes no object", remarks
    combined = [key for key in _COMBINED if key in schema]
    try:
        schema = _Flat(schema).flat(schema)
    except _Unusable as error:
        return {}, str(error), remarks
    if combined and combined != ["$ref"]:
        left = ", ".join(key for key in combined if key != "$ref")
        remarks.append(f"models get one list of parameters in place of {left} at the top of its schema")
    schema.setdefault("properties", {})
    return schema, _invalid(schema), remarks


def _invalid(schema: Mapping[str, Any]) -> str:
    """Return why ``schema`` can't be used to check calls, or why providers would refuse it; empty if it is usable."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - not before a server lists tools
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    for ref in _refs(schema):
        if not ref.startswith("#"):
            return f"its schema refers to another document, {one_line(ref, 80)}"
        if ref.startswith("#/") and _target(schema, ref) is None:
            return f"its schema refers to {one_line(ref, 80)}, which it does not define"
    names = _properties(dict(schema))
    if odd := next((name for name in names if not _PROPERTY.fullmatch(name)), ""):
        return f"models can't be given a parameter named {one_line(odd, 40)!r}"
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return f"its schema is not valid: {one_line(getattr(error, 'message', str(error)), 120)}"
    return ""


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if key in {"$ref", "$dynamicRef"} and isinstance(item, str):
                yield item
            yield from _refs(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _refs(item)


def _clean(value: Any, hidden: list[str], depth: int) -> Any:
    if depth > DEEPEST:
        raise RecursionError
    match value:
        case str():
            found = hidden_in(value)
            hidden.extend(found[:1])
            return legible(value) if found else value
        case Mapping():
            given = cast("Mapping[Any, Any]", value)
            return {_clean(str(key), hidden, depth): _clean(item, hidden, depth + 1) for key, item in given.items()}
        case list():
            return [_clean(item, hidden, depth + 1) for item in cast("list[Any]", value)]
        case _:
            return value


def canonical(value: Mapping[str, Any]) -> str:
    """Return a schema as text that is equal for equal schemas."""
    return json.dumps(value, sort_keys=True, default=str)


class _Flat:
    """Merges a schema with the choices and references at its top into one list of properties. Raises _Unusable."""

    def __init__(self, root: Schema) -> None:
        self._root, self._parts = root, 0

    def flat(self, schema: Schema, inside: tuple[str, ...] = ()) -> Schema:
        """Return ``schema`` without choices and references at its top. ``inside``: the references that led to it."""
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise _Unusable(f"its schema has more than {MOST_PARTS} choices and references at its top")
        found = {key: value for key, value in schema.items() if key not in _COMBINED}
        if isinstance(ref := schema.get("$ref"), str):
            found = _all_of([found, self._referred(ref, inside)])
        for part in _schemas(schema.get("allOf")):
            found = _all_of([found, self.flat(part, inside)])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                found = _all_of([found, _any_of(self._choices(schema[key], inside))])
        for part in _schemas([schema.get("then"), schema.get("else")]):
            found = _all_of([found, {"properties": self.flat(part, inside).get("properties", {})}])
        return found

    def _referred(self, ref: str, inside: tuple[str, ...]) -> Schema:
        if not ref.startswith("#"):
            raise _Unusable(f"its schema refers to another document, {one_line(ref, 80)}")
        if ref in inside:
            raise _Unusable(f"its schema refers to itself by {one_line(ref, 80)}")
        target = _target(self._root, ref)
        if not isinstance(target, dict):
            raise _Unusable(f"its schema refers to {one_line(ref, 80)}, which it does not define")
        return self.flat(cast("Schema", target), (*inside, ref))

    def _choices(self, given: Any, inside: tuple[str, ...]) -> list[Schema]:
        choices = [self.flat(part, inside) for part in _schemas(given)]
        objects = [choice for choice in choices if _may_be_object(choice)]
        if not objects:
            raise _Unusable("no choice at the top of its schema is an object")
        return objects


def _any_of(choices: Sequence[Schema]) -> Schema:
    """Return one schema that accepts whatever one of ``choices`` accepts."""
    variants: dict[str, list[Any]] = {}
    for choice in choices:
        for name, each in _properties(choice).items():
            known = variants.setdefault(name, [])
            known += [each] if each not in known else []
    properties = {name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in variants.items()}
    needed = [_required(choice) for choice in choices]
    found: Schema = {"properties": properties, "required": [n for n in needed[0] if all(n in each for each in needed)]}
    if all(choice.get("additionalProperties") is False for choice in choices):
        found["additionalProperties"] = False
    return found


def _all_of(parts: Sequence[Schema]) -> Schema:
    """Return the first schema with the properties of the others added."""
    first, *others = parts
    found, properties, required = dict(first), dict(_properties(first)), _required(first)
    for other in others:
        for name, each in _properties(other).items():
            same = name not in properties or properties[name] == each
            properties[name] = each if same else {"allOf": [properties[name], each]}
        required += [name for name in _required(other) if name not in required]
        found = {**{key: other[key] for key in ("type", "description", "title") if key in other}, **found}
        if other.get("additionalProperties") is False:
            found.setdefault("additionalProperties", False)
    if first.get("additionalProperties") is False and not set(properties) <= set(_properties(first)):
        # The schema is closed for its own properties; closed for all of them it would refuse the calls of the others.
        del found["additionalProperties"]
    found["properties"] = properties
    known = [name for name in required if name in properties]
    return {**found, "required": known} if known else {key: each for key, each in found.items() if key != "required"}


def _may_be_object(schema: Schema) -> bool:
    kind: Any = schema.get("type", "object")
    return "object" in (cast("list[Any]", kind) if isinstance(kind, list) else [kind])


def _properties(schema: Schema) -> Schema:
    given: Any = schema.get("properties")
    return cast("Schema", given) if isinstance(given, dict) else {}


def _required(schema: Schema) -> list[str]:
    given: Any = schema.get("required")
    return [name for name in cast("list[Any]", given) if isinstance(name, str)] if isinstance(given, list) else []


def _schemas(given: Any) -> list[Schema]:
    each: list[Any] = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("Schema", part) for part in each if isinstance(part, dict)]


def _target(root: Mapping[str, Any], ref: str) -> Any:
    """Return the target of a reference within the document; None if there is none."""
    at: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping):
            at = cast("Mapping[str, Any]", at).get(key)
        elif isinstance(at, list):
            items = cast("list[Any]", at)
            at = items[int(key)] if key.isascii() and key.isdigit() and int(key) < len(items) else None
        else:
            return None
    return at


NAME_CHARS = 64
"""Maximum characters of a tool's name that all providers accept."""
MOST_TOOLS = 1_000
DESCRIPTION_CHARS = 4_000
INSTRUCTIONS_CHARS = 2_000
_ODD = regex(r"[^A-Za-z0-9_-]+")


@frozen
class Definitions:
    """The tools that a server offers, a line for each change, and a line for each tool left out."""

    tools: tuple[RemoteTool, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def safe_name(name: str) -> str:
    """Return ``name`` without characters that a tool's name may not contain."""
    return _ODD.sub("_", name).strip("_") or "unnamed"


def full_name(server: str, tool: str) -> str:
    """Return the name of a tool for models; one that is too long is cut, and made unique by a hash."""
    whole = f"mcp__{server}__{safe_name(tool)}"
    if len(whole) <= NAME_CHARS:
        return whole
    return f"{whole[: NAME_CHARS - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def server_names(names: Sequence[str]) -> dict[str, str]:
    """Return the unique prefix of each server in tool names."""
    found: dict[str, str] = {}
    for name in names:
        plain = base = safe_name(name).replace("__", "_")[:32]
        number = 1
        while plain in found.values():
            number += 1
            plain = f"{base}_{number}"
        found[name] = plain
    return found


def read_tools(server: str, listed: Sequence[Mapping[str, Any]]) -> Definitions:
    """Return the tools of a listing. ``server``: the server's prefix in names."""
    tools: dict[str, RemoteTool] = {}
    notes: list[str] = []
    left_out: list[str] = []
    if len(listed) > MOST_TOOLS:
        left_out.append(f"{count(len(listed) - MOST_TOOLS, 'tool')} left out: ba takes {MOST_TOOLS} of a server")
    own = set[str]()
    for raw in listed[:MOST_TOOLS]:
        name = str(raw.get("name") or "")
        shown = one_line(paintable(name, newlines=False, reveal=True), 80) or "(no name)"
        if name in own:
            notes.append(f"{shown}: the server lists this name twice; the first counts")
            continue
        own.add(name)
        called = full_name(server, name)
        if not name.strip() or hidden_in(name):
            left_out.append(f"tool {shown}: left out, its name has hidden characters or is empty")
            continue
        if called in tools:
            called = f"{called[: NAME_CHARS - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            notes.append(f"{shown}: another tool has the same name for models; it is called {called}")
        tool, said = _tool(raw, name, called)
        tools[called] = tool
        notes += [f"{shown}: {text}" for text in said]
        if tool.trouble:
            left_out.append(f"tool {shown}: left out: {tool.trouble}")
    return Definitions(tuple(tools.values()), tuple(notes), tuple(left_out))


def plain_text(text: str, most: int) -> tuple[str, str]:
    """Return ``text`` without hidden characters, cut to ``most``, and a description of the changes, or ""."""
    hidden = hidden_in(text)
    clean = legible(text).strip()
    said = [f"{len(hidden)} kinds of hidden characters were removed"] if hidden else []
    if len(clean) > most:
        said.append(f"its text was cut to {most:,} of {len(clean):,} characters")
        clean = f"{clean[:most]} […]"
    return clean, "; ".join(said)


def definition_text(tool: RemoteTool) -> str:
    """Return a whole definition as text, for comparison by the user."""
    hints = [name for name in ("read_only", "destructive", "idempotent", "open_world") if getattr(tool, name)]
    schema = json.dumps(tool.schema, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{tool.name}\n{tool.title}\n\n{tool.description}\n\nhints: {', '.join(hints) or 'none'}\n\n{schema}\n"


def changed_parts(old: RemoteTool, new: RemoteTool) -> str:
    """Return the names of the parts in which two definitions differ; empty if there are none."""
    hints = ("read_only", "destructive", "idempotent", "open_world")
    parts = {
        "title": old.title != new.title,
        "description": old.description != new.description,
        "parameters": canonical(old.schema) != canonical(new.schema),
        "hints": any(getattr(old, name) != getattr(new, name) for name in hints),
    }
    return ", ".join(name for name, differs in parts.items() if differs)


def _tool(raw: Mapping[str, Any], name: str, called: str) -> tuple[RemoteTool, list[str]]:
    said: list[str] = []
    description, trouble = plain_text(str(raw.get("description") or ""), DESCRIPTION_CHARS)
    said += [f"in its description {trouble}"] if trouble else []
    hints = _group(raw.get("annotations"))
    title, _ = plain_text(str(raw.get("title") or hints.get("title") or ""), 200)
    schema, why, remarks = usable_schema(raw.get("inputSchema"))
    said += remarks
    tool = RemoteTool(
        name,
        called,
        title,
        description,
        schema,
        read_only=hints.get("readOnlyHint") is True,
        destructive=hints.get("destructiveHint") is not False,
        idempotent=hints.get("idempotentHint") is True,
        open_world=hints.get("openWorldHint") is not False,
        standing="refused" if why else "on",
        trouble=why,
    )
    return tool, said


def _group(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


NEW = "it is new since you approved the tools of this server"


@frozen
class KnownTools:
    """The stored state of a server. ``approved`` by the server's own tool names; ``listed``: the present listing;
    ``title``, ``protocol``, ``resources`` and ``prompts`` from the newest connection; ``left_out``: a line for each
    item that ba can't use. ``met``: the server was listed before, perhaps without tools."""

    approved: Mapping[str, RemoteTool] = field(default_factory=dict[str, RemoteTool])
    listed: tuple[RemoteTool, ...] = ()
    title: str = ""
    protocol: str = ""
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    met: bool = False
    left_out: tuple[str, ...] = ()

    def with_listing(self, listed: tuple[RemoteTool, ...]) -> KnownTools:
        """Return the state with a new listing. The first listing counts as approved, because the user has just added
        the server; if it is empty, nothing is approved, and tools added later are new."""
        if not self.met and not self.approved:
            return replace(self, approved={tool.name: tool for tool in listed}, listed=listed, met=True)
        # Keep the same object if nothing changed: calls compare all definitions, and comparing equal objects is free.
        same = (old if (old := self.approved.get(tool.name)) == tool else tool for tool in listed)
        return replace(self, listed=tuple(same), met=True)

    def with_approved(self, name: str) -> KnownTools:
        """Return the state with the present definition of a tool approved."""
        found = next((tool for tool in self.listed if tool.name == name), None)
        return replace(self, approved={**self.approved, name: found}) if found else self

    def offer_changes(self, later: KnownTools) -> tuple[str, ...]:
        """Return a line for each prompt and resource that is new or changed in ``later``."""
        if not self.met:
            return ()
        pairs = (
            ("prompt", {each.name: each for each in self.prompts}, {each.name: each for each in later.prompts}),
            ("resource", {each.uri: each for each in self.resources}, {each.uri: each for each in later.resources}),
        )
        return tuple(
            f"{kind} {one_line(name, 80)}: {'changed since' if name in before else 'new since'} the last listing"
            for kind, before, now in pairs
            for name, each in now.items()
            if before.get(name) != each
        )

    def judged(self) -> tuple[RemoteTool, ...]:
        """Return the listing, with each tool marked that differs from its approved definition."""
        return tuple(self._judged(tool) for tool in self.listed)

    def _judged(self, tool: RemoteTool) -> RemoteTool:
        if tool.standing == "refused":
            return tool
        old = self.approved.get(tool.name)
        if old is None:
            return replace(tool, standing="changed", trouble=NEW)
        parts = "" if old is tool or old == tool else changed_parts(old, tool)
        if not parts:
            return tool
        return replace(tool, standing="changed", trouble=f"its {parts} changed since you approved it")


class KnownServers:
    """The stored states in ``folder``; None stores nothing. ``root``: the project of the session. Blocks."""

    def __init__(self, folder: Path | None, root: Path | None = None) -> None:
        self._folder = folder
        self._root = root

    def read(self, config: ServerConfig) -> KnownTools:
        """Return the stored state of a server; an empty one if the file is missing or unreadable."""
        if self._folder is None:
            return KnownTools()
        try:
            data = cast("dict[str, Any]", json.loads(self._stored(config).read_bytes()))
            approved = {name: _stored_tool(raw) for name, raw in cast("dict[str, Any]", data["approved"]).items()}
            # A tool that equals its approved definition is stored by name only.
            each = cast("list[Any]", data["listed"])
            listed = tuple(approved[raw] if isinstance(raw, str) else _stored_tool(raw) for raw in each)
            resources = tuple(RemoteResource(**raw) for raw in cast("list[Any]", data["resources"]))
            prompts = tuple(_prompt(raw) for raw in cast("list[Any]", data["prompts"]))
            title, protocol = str(data["title"]), str(data["protocol"])
            # Files of older versions have no such lines.
            left_out = tuple(map(str, data.get("left_out", ())))
            return KnownTools(approved, listed, title, protocol, resources, prompts, met=True, left_out=left_out)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return KnownTools()

    def save(self, config: ServerConfig, known: KnownTools) -> None:
        """Store the state, readable only for the owner. Raises StorageError."""
        if self._folder is None:
            return
        data = {
            "server": config.name,
            "title": known.title,
            "protocol": known.protocol,
            "approved": {name: asdict(tool) for name, tool in known.approved.items()},
            "listed": [tool.name if known.approved.get(tool.name) == tool else asdict(tool) for tool in known.listed],
            "resources": [asdict(each) for each in known.resources],
            "prompts": [asdict(each) for each in known.prompts],
            "left_out": known.left_out,
        }
        save_whole(self._path(config), json.dumps(data, ensure_ascii=False), mode=0o600)

    def _path(self, config: ServerConfig) -> Path:
        assert self._folder
        return self._folder / f"{identity(config, self._root)}.json"

    def _stored(self, config: ServerConfig) -> Path:
        """Return the server's file; if it is missing, that of an older version, whose name did not include the source
        file."""
        path = self._path(config)
        assert self._folder
        return path if path.exists() else self._folder / f"{_hashed(_program(config))}.json"


def identity(config: ServerConfig, root: Path | None) -> str:
    """Return the identity of a server: a hash of its program or address and of its source file, without values that may
    be secret. A server of a project also depends on its ``root``: ``server.js`` is a different program in another
    project."""
    of = str(root or "") if config.scope in {"project", "local"} else ""
    return _hashed([*_program(config), config.scope, config.source, of])


def _program(config: ServerConfig) -> list[str]:
    return [config.name, config.transport, *config.command, config.folder, config.url]


def _hashed(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _prompt(raw: Any) -> RemotePrompt:
    given = cast("dict[str, Any]", raw)
    arguments = tuple(PromptArgument(**each) for each in cast("list[Any]", given["arguments"]))
    return RemotePrompt(str(given["name"]), str(given["description"]), arguments)


def _stored_tool(raw: Any) -> RemoteTool:
    given = cast("dict[str, Any]", raw)
    return RemoteTool(
        str(given["name"]),
        str(given["full_name"]),
        str(given["title"]),
        str(given["description"]),
        dict(given["schema"]),
        bool(given["read_only"]),
        bool(given["destructive"]),
        bool(given["idempotent"]),
        bool(given["open_world"]),
        "refused" if given["standing"] == "refused" else "on",
        str(given["trouble"]),
    )
