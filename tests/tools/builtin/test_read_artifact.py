"""read_artifact gives any part of a stored result, bounded, and says how to go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.context.files import find_ripgrep
from ba_tui.core.results import Prose, Source, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.builtin.artifacts import read_artifact_tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.formats import ROOM
from ba_tui.tools.guards.output import OutputDelivery, output
from ba_tui.tools.guards.validate import validate

LINES = "".join(f"line {number}\n" for number in range(1, 5_001))


@pytest.fixture
def shelf(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "session" / "data")


@pytest.fixture
def reading(definitions: Mapping[str, Definition], shelf: Artifacts) -> Tool:
    tool = read_artifact_tool(definitions["read_artifact"], shelf, find_ripgrep())
    return output(validate(tool), OutputDelivery(shelf))


async def read(tool: Tool, **args: Any) -> ToolResult:
    return await tool.run(args, Call("c", Branch(Turn(), Transcript())))


async def test_lines(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store(LINES).ref
    result = await read(reading, ref=ref)
    assert result.text.startswith("1\tline 1\n2\tline 2\n")
    assert result.text.endswith("200\tline 200\n[lines 1 to 200 of 5,000; go on with offset 201]")
    assert result.display == Source(ref, "\n".join(f"line {number}" for number in range(1, 201)), 1)
    result = await read(reading, ref=ref, offset=4_999, limit=10)
    assert result.text == "4999\tline 4999\n5000\tline 5000\n[lines 4,999 to 5,000 of 5,000]"
    result = await read(reading, ref=ref, offset=9_000)
    assert "has 5,000 lines; line 9000 is beyond" in result.text
    assert (await read(reading, ref=shelf.store("").ref)).text == "The result is empty."


async def test_a_part_is_never_stored_again(reading: Tool, shelf: Artifacts, tmp_path: Path) -> None:
    ref = shelf.store(("x" * 7 + "\n") * 900_000).ref
    result = await read(reading, ref=ref, limit=1_000, offset=890_000)
    assert result.artifact is None
    assert len(result.text) < ROOM["standard"]
    assert len(list((tmp_path / "session" / "data").iterdir())) == 2


async def test_a_very_long_line_goes_on_by_bytes(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store("[" + "1," * 50_000 + "1]\nend\n").ref
    result = await read(reading, ref=ref)
    assert result.text.endswith("[lines 1 to 1 of 2; go on with byte 18000: line 1 is longer]")
    result = await read(reading, ref=ref, byte=90_000)
    assert result.text.endswith("1]\nend\n[bytes 90,000 to 100,008 of 100,008, from line 1]")
    assert "beyond its end" in (await read(reading, ref=ref, byte=100_008)).text


async def test_words(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store(LINES).ref
    result = await read(reading, ref=ref, search="LINE 499", limit=3)
    hits, note = result.text.split("[")
    assert hits == "499:line 499\n1499:line 1499\n2499:line 2499\n"
    assert note == "the first 3 hits; go on with offset 2500, or narrow the search]"
    result = await read(reading, ref=ref, search="4999", context=1)
    assert result.text == "4998-line 4998\n4999:line 4999\n5000-line 5000\n[1 hit]"
    result = await read(reading, ref=ref, search="499", offset=4_990, context=1, limit=2)
    assert result.text.startswith("4989-line 4989\n4990:line 4990\n4991:line 4991\n4992-line 4992\n[the first 2 hits;")
    assert (await read(reading, ref=ref, search="nowhere")).text == f"Nothing in {ref} fits 'nowhere'."


async def test_context_of_hits_apart_is_kept_apart(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store(LINES).ref
    result = await read(reading, ref=ref, search=r"^line (3|5|9)$", regex=True, context=1)
    assert result.text == (
        "2-line 2\n3:line 3\n4-line 4\n5:line 5\n6-line 6\n--\n8-line 8\n9:line 9\n10-line 10\n[3 hits]"
    )


@pytest.mark.parametrize("with_ripgrep", [True, False])
async def test_expressions(definitions: Mapping[str, Definition], shelf: Artifacts, *, with_ripgrep: bool) -> None:
    tool = validate(read_artifact_tool(definitions["read_artifact"], shelf, find_ripgrep() if with_ripgrep else None))
    ref = shelf.store(LINES).ref
    result = await read(output(tool), ref=ref, search=r"^line 4\d99$", regex=True)
    assert [line.partition(":")[0] for line in result.text.splitlines()[:-1]] == [
        str(4099 + 100 * n) for n in range(10)
    ]
    result = await read(output(tool), ref=ref, search=r"line 4\d99", regex=True, offset=4_500)
    assert result.text.startswith("4599:line 4599\n")
    result = await read(output(tool), ref=ref, search="line", regex=True, limit=1_000)
    assert "[the first 200 hits; go on with" in result.text
    result = await read(output(tool), ref=ref, search="(", regex=True)
    assert result.error
    assert result.error.kind == "invalid_parameters"


async def test_binary_and_coloured_results_are_read_as_text(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store(b"\x1b[31mred\x1b[0m \x00 \xff line\n10%\r100%\nlast\n").ref
    assert (await read(reading, ref=ref)).text.startswith("1\tred  \N{REPLACEMENT CHARACTER} line\n2\t100%\n3\tlast")
    assert (await read(reading, ref=ref, search="last")).text.startswith("3:last")
    if find_ripgrep():
        assert (await read(reading, ref=ref, search="l[a]st", regex=True)).text.startswith("3:last")


DOCUMENT = {"items": [{"name": "a", "deep": {"x/y": [1, 2, {"~": "tilde"}]}}, {"name": "b"}], "total": 2}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/items/1/name", "b"),
        ("items[1].name", "b"),
        ("$.items[0].name", "a"),
        ("/items/0/deep/x~1y/2/~0", "tilde"),
        ("/total", 2),
        ("", DOCUMENT),
        ("/items/1", {"name": "b"}),
    ],
)
async def test_paths_into_json(reading: Tool, shelf: Artifacts, path: str, value: Any) -> None:
    ref = shelf.store(json.dumps(DOCUMENT), kind="json").ref
    assert json.loads((await read(reading, ref=ref, path=path)).text) == value


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/itmes", "has no key 'itmes'"),
        ("/items/2", "has 2 items, counted from 0; there is no '2'"),
        ("/items/x", "there is no 'x'"),
        ("/total/x", "is 2; it has no keys"),
    ],
)
async def test_paths_that_lead_nowhere(reading: Tool, shelf: Artifacts, path: str, said: str) -> None:
    ref = shelf.store(json.dumps(DOCUMENT), kind="json").ref
    result = await read(reading, ref=ref, path=path)
    assert result.error
    assert result.error.kind == "not_found"
    assert said in result.text


async def test_paths_into_json_lines_of_any_size(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store(
        "".join(json.dumps({"n": number, "x": "y" * 20}) + "\n" for number in range(90_000)), kind="json"
    ).ref
    assert shelf.about(ref).size > 2_000_000
    assert (await read(reading, ref=ref, path="/80000/n")).text == "80000"
    assert "can't be read by path" in (await read(reading, ref=ref, path="/n")).text
    assert "no JSON" in (await read(reading, ref=shelf.store("plain\ntext\n").ref, path="/1/n")).text


async def test_a_large_value_is_shown_in_part(reading: Tool, shelf: Artifacts) -> None:
    ref = shelf.store(json.dumps({"rows": [{"n": number} for number in range(9_000)]}), kind="json").ref
    result = await read(reading, ref=ref, path="/rows")
    assert result.text.startswith("An array of 9,000 items, the first ")
    assert result.text.endswith("[give a longer path for more of it]")
    assert isinstance(result.display, Prose)


async def test_refusals(reading: Tool, shelf: Artifacts, tmp_path: Path) -> None:
    made = shelf.store(LINES)
    both = await read(reading, ref=made.ref, search="x", byte=3)
    assert both.error
    assert "search and byte can't be used together" in both.text
    other = Artifacts(tmp_path / "other" / "data").store("theirs").ref
    for ref, said in ((other, "no result"), ("/etc/passwd", "no reference"), (f"data/{'0' * 32}", "no result")):
        result = await read(reading, ref=ref)
        assert result.error
        assert result.error.kind == "not_found"
        assert said in result.text
    shutil.rmtree(tmp_path / "other")
    shelf.path(made.ref).unlink()
    for args in ({}, {"search": "x"}, {"search": "x", "regex": True}, {"byte": 1}, {"path": "/1"}):
        assert "has expired" in (await read(reading, ref=made.ref, **args)).text


BODY = [f"{number}{'A1b2C3d4E5f6G7h8' * 4}"[:64] for number in range(1_000, 1_006)]
KEYED = "\n".join(["before", "-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----", "after"])


@pytest.mark.parametrize(
    "args",
    [
        {"offset": 4, "limit": 2},
        {"byte": 130},
        {"search": "1003A1b2"},
        {"search": "1003A1b2", "regex": True, "context": 1},
        {"search": "after", "context": 3},
    ],
)
async def test_a_part_of_a_secret_is_masked_as_the_whole_is(reading: Tool, shelf: Artifacts, args: dict[str, Any]):
    result = await read(reading, ref=shelf.store(KEYED).ref, **args)
    assert not result.is_error
    assert "[secret: private key]" in result.text
    assert not any(line[:20] in result.text for line in BODY)


async def test_a_field_that_is_called_a_password_is_one(reading: Tool, shelf: Artifacts):
    ref = shelf.store(json.dumps({"db": {"password": "Tr0ub4dor3", "port": 5432}}), kind="json").ref
    assert (await read(reading, ref=ref, path="/db/password")).text == '"[secret: value]"'
    assert (await read(reading, ref=ref, path="/db/port")).text == "5432"


async def test_head_and_tail_hold_no_part_of_a_secret(tmp_path: Path, shelf: Artifacts, reading: Tool):
    text = "x" * 80 + "\n"

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult("\n".join([text * args["before"], KEYED, text * 400]))

    for before in range(0, 400, 7):
        tool = output(replace(reading, run=run), OutputDelivery(shelf, secrecy="redact"))
        result = await read(tool, before=before)
        assert KEYED in result.text or not any(line[:20] in result.text for line in BODY)
