"""Declared tools: what the model reads of a typed function with a docstring, and why some can't be tools."""

from __future__ import annotations

import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import ba_tui
from ba_tui import tool
from ba_tui.tools.declared_tools import DeclaredTool, ToolFault, declared_in


@dataclass
class Place:
    title: str
    zoom: int = 3


@tool(effect="read", target="city", timeout=5, tags=("sky",), needs=("git",))
def forecast(
    city: str,
    days: Annotated[int, "How many days, 1 to 7"] = 1,
    unit: Literal["c", "f"] = "c",
    title: str = "",
    place: Place | None = None,
    folder: Path = Path(),
) -> str:
    """Forecast for a city. Use it for the coming days.

    It knows nothing of the past.

    Args:
        city: Its name,
            with the country where it is not clear.

    Returns:
        A line a day.
    """
    return f"{city} {days} {unit} {place} {folder!r}"


def test_the_schema_comes_from_hints_and_docstring():
    record = DeclaredTool(forecast).record
    assert record["description"] == (
        "Forecast for a city. Use it for the coming days.\nIt knows nothing of the past.\nReturns: A line a day."
    )
    schema = record["schema"]
    assert schema["required"] == ["city"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["city"] == {
        "type": "string",
        "description": "Its name, with the country where it is not clear.",
    }
    assert schema["properties"]["days"] == {"type": "integer", "default": 1, "description": "How many days, 1 to 7"}
    assert schema["properties"]["unit"]["enum"] == ["c", "f"]
    assert schema["properties"]["title"] == {"type": "string", "default": ""}, "a parameter named title stays"
    assert schema["$defs"]["Place"]["properties"]["title"] == {"type": "string"}


def test_facts_are_told_and_what_is_not_said_has_a_safe_default():
    record = DeclaredTool(forecast).record
    assert [record[key] for key in ("name", "effect", "target", "timeout", "tags", "needs")] == [
        "forecast", "read", "city", 5.0, ["sky"], ["git"],
    ]  # fmt: skip

    @tool
    def plain() -> str:
        """Say nothing of itself."""
        return ""

    record = DeclaredTool(plain).record
    assert (record["effect"], record["timeout"], record["stateful"]) == ("execute", 120.0, False)


def test_arguments_arrive_in_the_types_asked_for_and_defaults_stay_the_functions_own():
    derived = DeclaredTool(forecast)
    given = derived.bind({"city": "Aachen", "place": {"title": "here"}, "folder": "a/b"})
    assert given == {"city": "Aachen", "place": Place("here"), "folder": Path("a/b")}
    assert forecast(**given) == "Aachen 1 c Place(title='here', zoom=3) PosixPath('a/b')"


def test_a_function_with_the_names_of_pydantics_own_is_fine():
    @tool
    def odd(schema: str, copy: int, model_config: str, json: bool = False) -> str:
        """Take names that a model class has too."""
        return ""

    derived = DeclaredTool(odd)
    assert list(derived.record["schema"]["properties"]) == ["schema", "copy", "model_config", "json"]
    assert derived.bind({"schema": "a", "copy": 1, "model_config": "b"}) == {
        "schema": "a", "copy": 1, "model_config": "b",
    }  # fmt: skip


def test_a_class_with_run_is_a_tool_with_a_state():
    @tool(effect="read")
    class WordCount:
        """Count words over several calls."""

        def run(self, text: str) -> int:
            """Count.

            Args:
                text: Any words.
            """
            return len(text.split())

    record = DeclaredTool(WordCount).record
    assert (record["name"], record["stateful"]) == ("word_count", True)
    assert record["description"] == "Count words over several calls."
    assert record["schema"]["properties"]["text"]["description"] == "Any words."


def test_a_schema_of_ones_own_is_taken_as_it_is():
    schema = {"type": "object", "properties": {"x": {"type": "integer", "title": "X"}}}

    @tool(schema=schema)
    def own(x: Any) -> str:
        """Take anything."""
        return ""

    assert DeclaredTool(own).record["schema"] == schema
    assert DeclaredTool(own).bind({"x": "anything"}) == {"x": "anything"}


def no_type(x) -> str:
    """Doc."""
    return x


def no_words(x: int) -> str:
    return str(x)


def starred(*x: int) -> str:
    """Doc."""
    return str(x)


def strange(x: types.FrameType) -> str:
    """Doc."""
    return str(x)


def unread(x: Nowhere) -> str:  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
    """Doc."""
    return str(x)


def good(x: int) -> str:
    """Doc."""
    return str(x)


class Runless:
    """Doc."""


@pytest.mark.parametrize(
    ("found", "options", "said"),
    [
        (no_type, {}, "the parameter 'x' has no type hint"),
        (no_words, {}, "it has no docstring"),
        (starred, {}, "the parameters of *x can't be described"),
        (strange, {}, "a type hint can't be described"),
        (unread, {}, "its type hints can't be read: name 'Nowhere' is not defined"),
        (Runless, {}, "a class that is a tool needs a method named run"),
        (good, {"name": "Bad Name"}, "the name 'Bad Name' needs lower-case letters"),
        (good, {"effect": "reads"}, "effect='reads': expected one of read, write, execute, network"),
        (good, {"target": "y"}, "there is no parameter 'y'"),
        (good, {"paths": "x"}, "paths='x': expected a list of texts"),
        (good, {"timeout": 0}, "timeout=0: expected seconds"),
        (good, {"examples": ["a"]}, "examples=['a']: expected a list of arguments"),
        (good, {"timeout": True}, "timeout=True: expected seconds"),
        (good, {"level": "loud"}, "level='loud': expected one of brief, standard, full"),
        (good, {"schema": {"type": "array"}}, 'the schema must be a mapping with type: "object"'),
        (
            good,
            {"schema": {"type": "object", "properties": {"x": {"type": "int"}}}},
            "properties.x.type is not a valid JSON Schema: expected one of",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_can_not_be_a_tool_says_why_and_where(found: Any, options: Any, said: str):
    marked = tool(**options)(found)
    try:
        with pytest.raises(ToolFault, match=f"^{found.__name__}: ") as caught:
            print(DeclaredTool(marked).record)
        assert said in str(caught.value)
        assert caught.value.line > 100
    finally:
        del marked.__ba_tool__


def test_an_unknown_option_is_refused_where_it_stands():
    options: dict[str, Any] = {"efect": "read"}
    with pytest.raises(TypeError, match="no option 'efect'; did you mean 'effect'"):
        tool(**options)
    with pytest.raises(TypeError, match="decorates a function or a class"):
        tool()(3)  # pyright: ignore[reportArgumentType]


def module(text: str) -> types.ModuleType:
    made = types.ModuleType("made")
    exec(compile(text, "made.py", "exec"), made.__dict__)
    return made


TWO = '''
from ba_tui import tool
@tool
def second() -> str:
    """Two."""
@tool
def first() -> str:
    """One."""
def neither() -> str:
    """None."""
'''


def test_a_module_s_own_declared_tools_are_found_in_the_order_of_lines():
    assert [each.__name__ for each in declared_in(module(TWO))] == ["second", "first"]
    imported = module("x = 1")
    imported.__dict__["forecast"] = forecast
    assert list(declared_in(imported)) == [], "a tool of another module is not this one's"


def test_all_wins_over_what_stands_in_the_module():
    assert [each.__name__ for each in declared_in(module(TWO + "__all__ = ['first', 'neither']"))] == ["first"]
    shared = module("__all__ = ['forecast']")
    shared.__dict__["forecast"] = forecast
    assert list(declared_in(shared)) == [forecast]
    with pytest.raises(ToolFault, match="__all__ names 'third'"):
        list(declared_in(module("__all__ = ['third']")))


def test_the_package_gives_the_decorator_and_loads_nothing_before():
    heavy = "('ba_tui.', 'pydantic', 'typing')"
    code = f"import sys, ba_tui; print([name for name in sys.modules if name.startswith({heavy})])"
    run = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True,
                         cwd=Path(ba_tui.__file__).parents[1])  # fmt: skip
    assert run.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'tols'"):
        ba_tui.tols  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
