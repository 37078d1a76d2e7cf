"""Notebooks: cells are read as text and edited in their source, the JSON around it staying byte for byte."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.messages import Image
from ba_tui.core.provider import Modalities
from ba_tui.tools.builtin.files import read_file_tool
from ba_tui.tools.editing.notebooks import read_notebook, with_source
from ba_tui.tools.editing.seen_files import SeenFiles
from tests.tools.builtin.test_media import png
from tests.tools.conftest import Harness


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def code(source: str, *outputs: dict[str, Any], id: str = "", count: int | None = None) -> dict[str, Any]:
    named = {"id": id} if id else {}
    cell = {"cell_type": "code", "execution_count": count, **named, "metadata": {}, "outputs": list(outputs)}
    return {**cell, "source": lines(source)}


def notebook(*cells: dict[str, Any], indent: int | None = 1) -> str:
    content = {"cells": list(cells), "metadata": {"language": "python"}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=indent, ensure_ascii=False) + "\n"


WORDS = {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": lines("# Título\nwords")}
STREAM = {"output_type": "stream", "name": "stdout", "text": ["\x1b[31mred\x1b[0m\n", "more\n"]}
ERROR = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["Traceback", "KeyError: 'x'"]}
PIXELS = base64.b64encode(png(20, 10)).decode()
PLOT = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"image/png": PIXELS, "text/plain": "<Figure>", "text/html": "<b>"},
}


async def test_cells_with_their_outputs(harness: Harness) -> None:
    harness.write("a.ipynb", notebook(WORDS, code("x = 1\nprint(x)", STREAM, ERROR, PLOT, id="c1", count=3)))
    text = (await harness.run("read_file", path="a.ipynb")).text
    assert text == (
        "[cell 1] markdown id=intro\n# Título\nwords\n\n"
        "[cell 2] code id=c1 run as [3]\nx = 1\nprint(x)\n"
        "--- output\nred\nmore\n"
        "--- output\nTraceback\nKeyError: 'x'\n"
        "--- output\n(a PNG image, 20×10 pixels; the model in use sees no pictures)\n<Figure>\n\n"
        "[cells 1-2 of 2]"
    )
    part = await harness.run("read_file", path="a.ipynb", limit=1)
    assert part.text.endswith("words\n\n[cells 1-1 of 2; go on with offset=2]")
    assert "no cell 3" in (await harness.run("read_file", path="a.ipynb", offset=3)).text


async def test_plots_are_attached_for_a_model_that_sees(harness: Harness) -> None:
    definition = harness.definitions["read_file"]
    harness.tools["read_file"] = read_file_tool(
        definition, harness.workspace, SeenFiles(), Modalities(pictures=lambda: True)
    )
    harness.write("a.ipynb", notebook(code("plot()", PLOT)))
    result = await harness.run("read_file", path="a.ipynb")
    assert "attached as picture 1" in result.text
    assert result.attachments == (Image("image/png", PIXELS),)


@pytest.mark.parametrize("indent", [1, 2, None])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_only_the_source_of_the_cell_changes(harness: Harness, indent: int | None, end: str) -> None:
    before = [WORDS, code("x = 1\ny = 2", STREAM, id="c1", count=3), code("z = 3\n")]
    file = harness.write("a.ipynb", notebook(*before, indent=indent).replace("\n", end))
    await harness.run("read_file", path="a.ipynb")
    result = await harness.run("edit_file", path="a.ipynb", old_string="x = 1\n", new_string="x = 'é'\nw = 0\n")
    assert "cell 2 keeps the outputs of its last run" in result.text
    after = [WORDS, code("x = 'é'\nw = 0\ny = 2", STREAM, id="c1", count=3), code("z = 3\n")]
    assert file.read_bytes().decode() == notebook(*after, indent=indent).replace("\n", end)


async def test_which_cell_is_meant(harness: Harness) -> None:
    file = harness.write("a.ipynb", notebook(code("x = 1", id="one"), code("x = 1", id="two"), code("")))
    await harness.run("read_file", path="a.ipynb")

    async def tried(**args: Any) -> str:
        return (await harness.run("edit_file", path="a.ipynb", **args)).text

    assert "The cells 1, 2 contain old_string" in await tried(old_string="x = 1", new_string="x = 2")
    assert "no cell 'three'" in await tried(old_string="x = 1", new_string="x = 2", cell="three")
    assert "No cell of a.ipynb contains old_string" in await tried(old_string="y = 1", new_string="y = 2")
    assert "Nearest lines:\n1\tx = 1" in await tried(old_string="x = 10", new_string="y", cell=1)
    await tried(old_string="x = 1", new_string="x = 2", cell="two")
    await tried(old_string="x = 1", new_string="x = 3", cell=1)
    await tried(old_string="", new_string="new = 1", cell="3")
    cells = read_notebook(file.read_text())
    assert cells is not None
    assert [cell.source for cell in cells] == ["x = 3", "x = 2", "new = 1"]
    await tried(old_string='"language": "python"', new_string='"language": "r"')
    assert json.loads(file.read_text())["metadata"] == {"language": "r"}
    harness.write("a.txt", "x = 1\n")
    await harness.run("read_file", path="a.txt")
    wrong = await harness.run("edit_file", path="a.txt", old_string="x", new_string="y", cell=1)
    assert "has no cells" in wrong.text


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": [], "nbformat": 3}', '{"cells": {}, "nbformat": 4}'])
async def test_what_is_no_notebook_is_read_as_text(harness: Harness, text: str) -> None:
    assert read_notebook(text) is None
    harness.write("a.ipynb", text)
    assert not (await harness.run("read_file", path="a.ipynb")).is_error


SOURCES = st.text(st.sampled_from('ab"\\\n\té\u2028{}[],: '), max_size=12)


@given(st.lists(SOURCES, min_size=1, max_size=4), st.data(), SOURCES, st.sampled_from([None, 1, 4]))
def test_any_source_can_be_put_in_any_cell(
    sources: list[str], data: st.DataObject, new: str, indent: int | None
) -> None:
    number = data.draw(st.integers(0, len(sources) - 1))
    text = notebook(*map(code, sources), indent=indent)
    cells = read_notebook(text)
    assert cells is not None
    after = read_notebook(with_source(text, cells[number], new))
    assert after is not None
    assert [cell.source for cell in after] == [*sources[:number], new, *sources[number + 1 :]]
