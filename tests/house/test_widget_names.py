"""Names by which Textual finds styles and handlers, and private attributes that it keeps for itself."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from functools import cache
from pathlib import Path

from textual.message import Message
from textual.message_pump import MessagePump

import ba_tui.faces.tui as face
from ba_tui import features


@cache
def set_on_self(cls: type) -> frozenset[str]:
    """Private attributes that the class's own code assigns."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls)))):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
                    found.add(part.attr)
    return frozenset(name for name in found if name.startswith("_"))


def our_widgets() -> list[type[MessagePump]]:
    classes: list[type[MessagePump]] = []
    screens = pkgutil.walk_packages(features.__path__, f"{features.__name__}.")
    infos = [info for info in screens if ".tui" in info.name]
    for info in (*pkgutil.walk_packages(face.__path__, f"{face.__name__}."), *infos):
        if not info.name.endswith("__main__"):
            members = inspect.getmembers(importlib.import_module(info.name), inspect.isclass)
            classes += [cls for _, cls in members if issubclass(cls, MessagePump) and cls.__module__ == info.name]
    return classes


def test_private_names_are_ours_alone() -> None:
    taken: list[str] = []
    for cls in our_widgets():
        theirs = [base for base in cls.__mro__ if base.__module__.startswith("textual.")]
        names = frozenset[str]().union(*map(set_on_self, theirs))
        taken += [f"{cls.__module__}.{cls.__name__}.{both}" for both in sorted(set_on_self(cls) & names)]
    assert taken == []


def test_styles_name_widgets_that_exist() -> None:
    """A selector of a class that was renamed matches nothing, and nobody hears of it."""
    known = {base.__name__ for cls in our_widgets() for base in cls.__mro__}
    known |= {cls.__name__ for cls in every_subclass(MessagePump)}
    sheets = {path.name: path.read_text("utf-8") for path in Path(face.__path__[0]).rglob("*.tcss")}
    sheets |= {cls.__name__: vars(cls).get("DEFAULT_CSS", "") for cls in our_widgets()}
    named = {
        f"{where}: {name}"
        for where, text in sheets.items()
        for selector in re.findall(r"(?:^|[{};])([^{};]*)(?=\{)", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
        for name in re.findall(r"(?<![\w.#$:-])[A-Z]\w*", selector)
        if name not in known
    }
    assert named == set()


def test_handlers_are_called_by_messages_that_exist() -> None:
    """``on_`` and the name of a message; when the message is renamed, the method is never called."""
    widgets = our_widgets()
    names = {message.handler_name for message in every_subclass(Message)}
    idle = [
        f"{cls.__name__}.{name}"
        for cls in widgets
        for name in vars(cls)
        if name.removeprefix("_").startswith("on_") and name.removeprefix("_") not in names
    ]
    assert idle == []


def every_subclass(cls: type) -> set[type]:
    return {each for below in cls.__subclasses__() for each in (below, *every_subclass(below))}


def test_every_style_sheet_of_a_screen_exists() -> None:
    """Textual reads it when the screen opens: a screen that moved to another folder would end the app then."""
    missing: list[str] = []
    for cls in our_widgets():
        sheets = cls.__dict__.get("CSS_PATH") or ()
        folder = Path(inspect.getfile(cls)).parent
        listed = sheets if isinstance(sheets, list | tuple) else [sheets]
        missing += [f"{cls.__name__}: {sheet}" for sheet in listed if not (folder / sheet).is_file()]
    assert missing == []
