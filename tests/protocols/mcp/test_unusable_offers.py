"""What a server offers and ba can't read: only the bad item goes, by its name, and so does a bad block of a result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types.methods import validate_server_result

from ba_tui.features.mcp.client.definitions import MOST_PARTS, usable_schema
from ba_tui.features.mcp.client.incoming import mended
from tests.protocols.mcp.calls import Answered, servers
from tests.protocols.mcp.programs import raw

VERSIONS = ("2024-11-05", "2025-11-25", "2026-07-28")
OBJECT: Mapping[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
TOOLS = (
    ({"name": "good", "inputSchema": OBJECT}, ""),
    ({"name": "empty", "inputSchema": {}}, ""),
    ({"name": "choices", "inputSchema": {"anyOf": [OBJECT, {"type": "null"}]}}, ""),
    ({"name": "refers", "inputSchema": {"$ref": "#/$defs/A", "$defs": {"A": OBJECT}}}, ""),
    ({"name": "nullable", "inputSchema": {**OBJECT, "type": ["object", "null"]}}, ""),
    ({"name": "decorated", "inputSchema": OBJECT, "icons": 3, "annotations": {"readOnlyHint": "perhaps"}}, ""),
    ({"name": "results", "inputSchema": OBJECT, "outputSchema": {"type": "nothing"}}, ""),
    ({"name": "unknown", "inputSchema": {"type": "nothing"}}, "tool unknown: left out: its schema describes no object"),
    ({"name": "text", "inputSchema": "object"}, "tool text: left out: its parameters have no schema"),
    ({"name": "none"}, "tool none: left out: its parameters have no schema"),
    ({"name": 7, "inputSchema": OBJECT}, "tool 7: left out: name: Input should be a valid string"),
    ("tool", "tool (no name): left out: it is no object"),
)
LISTINGS: Mapping[str, tuple[str, list[Any], list[str]]] = {
    "tools/list": ("tools", [tool for tool, _ in TOOLS], [why for _, why in TOOLS if why]),
    "prompts/list": (
        "prompts",
        [{"name": "good"}, {"name": "bad", "arguments": "all"}, {"arguments": []}],
        ["prompt bad: left out: arguments", "prompt (no name): left out: name: Field required"],
    ),
    "resources/list": (
        "resources",
        [{"uri": "note://1", "name": "good", "size": "huge"}, {"uri": "note://2", "name": None}, {"name": "x"}],
        ["resource note://2: left out: name", "resource (no name): left out: uri: Field required"],
    ),
    "resources/templates/list": (
        "resourceTemplates",
        [{"uriTemplate": "note://{n}", "name": "good"}, {"uriTemplate": {}, "name": "bad"}],
        ["resource template (no name): left out: uriTemplate"],
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", LISTINGS)
def test_a_bad_item_of_a_listing_loses_only_itself(method: str, version: str) -> None:
    key, items, left_out = LISTINGS[method]
    result: dict[str, Any] = {key: deepcopy(items), **(CACHED if version == VERSIONS[-1] else {})}
    said = [line for line in mended(method, result, version) if "left out" in line]
    assert len(said) == len(left_out), said
    assert all(line.startswith(start) for line, start in zip(said, left_out, strict=True)), said
    assert len(result[key]) == len(items) - len(left_out)
    validate_server_result(method, version, result)


BLOCKS: tuple[tuple[Any, str], ...] = (
    ({"type": "text", "text": "good"}, ""),
    ({"type": "text", "text": "kept", "annotations": {"priority": 70}}, ""),
    (
        {"type": "video\x1b[2J", "data": "x"},
        "content of type 'video␛[2J' was left out, because ba can't read it: its type",
    ),
    ({"type": "image", "data": 5, "mimeType": "image/png"}, "content of type 'image' was left out, because ba can't"),
    ({"type": "resource", "resource": {"uri": "a:b"}}, "content of type 'resource' was left out"),
    ({"text": "no type"}, "content was left out"),
    ("words", "content was left out, because ba can't read it: it is no object"),
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_a_bad_block_is_replaced_by_a_text_that_names_it(method: str, version: str) -> None:
    if method == "resources/read":
        pieces: list[Any] = [
            {"uri": "note://1", "text": "good"},
            {"uri": "note://2", "text": 7},
            {"text": "x"},
            "words",
        ]
        key, bad = "contents", [1, 2, 3]
    elif method == "prompts/get":
        pieces = [{"role": "user", "content": block} for block, _ in BLOCKS] + [
            {"role": "boss", "content": BLOCKS[0][0]}
        ]
        key, bad = "messages", [2, 3, 4, 5, 6, 7]
    else:
        pieces, key, bad = [block for block, _ in BLOCKS], "content", [2, 3, 4, 5, 6]
    result: dict[str, Any] = {key: deepcopy(pieces), **(CACHED if version == VERSIONS[-1] else {})}
    said = mended(method, result, version)
    assert len([line for line in said if "left out" in line]) == len(bad), said
    assert [place for place, piece in enumerate(result[key]) if "was left out" in json.dumps(piece)] == bad
    assert "\x1b" not in json.dumps(said)
    if method == "tools/call":
        texts = [block["text"] for block in result["content"]]
        assert texts[:2] == ["good", "kept"]
        assert all(text.startswith(f"[{start}") for text, (_, start) in zip(texts, BLOCKS, strict=True) if start)
    validate_server_result(method, version, result)


def test_structured_content_that_an_older_version_does_not_know_becomes_text() -> None:
    result: dict[str, Any] = {"structuredContent": [1, 2]}
    mended("tools/call", result, "2025-11-25")
    assert result == {"content": [{"type": "text", "text": "[1, 2]"}]}
    newer: dict[str, Any] = {"structuredContent": [1, 2], **CACHED}
    mended("tools/call", newer, "2026-07-28")
    assert newer["structuredContent"] == [1, 2]
    assert newer["content"] == []


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
CHOICES: tuple[tuple[Mapping[str, Any], Mapping[str, Any], list[str]], ...] = (
    ({}, {}, []),
    (
        {"anyOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": NUMBER}}]},
        {"a": TEXT, "b": NUMBER},
        [],
    ),
    (
        {
            "oneOf": [
                {"properties": {"a": TEXT, "k": TEXT}, "required": ["a", "k"]},
                {"properties": {"k": NUMBER}, "required": ["k"]},
            ]
        },
        {"a": TEXT, "k": {"anyOf": [TEXT, NUMBER]}},
        ["k"],
    ),
    (
        {"allOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": NUMBER}}]},
        {"a": TEXT, "b": NUMBER},
        ["a"],
    ),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"properties": {"a": TEXT}}}}, {"a": TEXT}, []),
    (
        {
            "properties": {"k": TEXT},
            "required": ["k"],
            "anyOf": [{"$ref": "#/$defs/x"}],
            "$defs": {"x": {"properties": {"a": TEXT}}},
        },
        {"k": TEXT, "a": TEXT},
        ["k"],
    ),
    ({"additionalProperties": False, "anyOf": [{"properties": {"a": TEXT}}]}, {"a": TEXT}, []),
    (
        {"properties": {"k": TEXT}, "if": {"required": ["k"]}, "then": {"properties": {"a": TEXT}}},
        {"k": TEXT, "a": TEXT},
        [],
    ),
    (
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}]},
        {"a": TEXT},
        ["a"],
    ),
)
ARGUMENTS: tuple[Mapping[str, Any], ...] = (
    {},
    *(
        {"a": "x"},
        {"b": 1},
        {"k": "x"},
        {"k": 1},
        {"a": "x", "k": "x"},
        {"a": "x", "b": 1},
        {"z": 1},
        {"a": "x", "z": 1},
    ),
)


@pytest.mark.parametrize(("given", "properties", "required"), CHOICES)
def test_choices_at_the_top_of_a_schema_become_one_list(
    given: Mapping[str, Any], properties: Mapping[str, Any], required: list[str]
) -> None:
    schema, why, _ = usable_schema({"type": "object", **given})
    assert not why
    assert (schema["type"], schema["properties"], schema.get("required", [])) == ("object", properties, required)
    assert not {"anyOf", "oneOf", "allOf", "$ref", "if", "then"} & set(schema)
    for arguments in ARGUMENTS:
        if Draft202012Validator({"type": "object", **given}).is_valid(arguments):
            assert Draft202012Validator(schema).is_valid(arguments), arguments


def _doubling() -> Mapping[str, Any]:
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(15)}
    return {"$ref": "#/$defs/d0", "$defs": {**twice, "d15": {"properties": {"a": TEXT}}}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "no choice at the top of its schema is an object"),
        ({"$ref": "#/$defs/none"}, "refers to #/$defs/none, which it does not define"),
        ({"$ref": "http://evil.example/x.json"}, "refers to another document"),
        ({"$ref": "#"}, "refers to itself"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}, "refers to itself"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to #/$defs/none, which it does not define"),
        ({"properties": {"a": {"type": "nothing"}}}, "its schema is not valid"),
        ({"anyOf": [{"properties": {"bad name!": TEXT}}]}, "can't be given a parameter"),
        (_doubling(), f"more than {MOST_PARTS} choices"),
    ],
)
def test_a_schema_of_which_no_list_can_be_made_says_why(given: Mapping[str, Any], why: str) -> None:
    assert why in usable_schema({"type": "object", **given})[1]


OFFERS = """
def more(message):
    method, id = message.get("method"), message.get("id")
    if method == "prompts/list":
        say(id=id, result={"prompts": [{"name": "greet"}, {"name": "bad", "arguments": 3}]})
    elif method == "resources/list":
        say(id=id, result={"resources": [{"uri": "note://1", "name": "One"}, {"uri": "note://2"}]})
    else:
        tools = [{"name": "empty", "inputSchema": {}}, {"name": "odd", "inputSchema": {"type": "nothing"}}]
        answer(message, tools, reply, {"tools": {}, "resources": {}, "prompts": {}})
def reply(message):
    say(id=message["id"], result={"content": [{"type": "text", "text": "good"}, {"type": "video"}]})
for line in sys.stdin:
    more(json.loads(line))
"""


async def test_what_is_left_out_is_named_also_by_a_later_session_without_a_connection(tmp_path: Path) -> None:
    config, store = raw(tmp_path, OFFERS), tmp_path / "store"
    found = servers(tmp_path, config, store=store)
    state = await found.connect("raw")
    offers = (
        [tool.name for tool in state.tools],
        [each.uri for each in state.resources],
        [p.name for p in state.prompts],
    )
    assert offers == (["empty"], ["note://1"], ["greet"])
    assert [line.partition(": left out: ")[0] for line in state.left_out] == [
        "tool odd",
        "resource note://2",
        "prompt bad",
    ]
    assert set(state.left_out) <= set(state.notes)
    answer = await found.each["raw"].call("empty", {}, Answered().call)
    assert [part.text[:34] for part in answer.parts] == ["good", "[content of type 'video' was left "]
    await found.close()
    later = servers(tmp_path, config, store=store)
    assert later.listed()[0].left_out == state.left_out
    await later.close()
