"""The files that ``ba tools new`` writes: the frame of a tool, which runs as it is, and a test beside it.

How tool files are found and read stands in ``ba_tui.tools``.
"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.resources import save_whole

TOOL = '''\
"""A tool for ba: functions with @tool before them. Their type hints and docstrings are what the model reads."""

from __future__ import annotations

from typing import Annotated

from ba_tui import tool


# effect: the worst it does. "read" runs without asking, in the sandbox, where it can't write or use the network;
# "write", "network" and "execute" ask first.
@tool(effect="read")
def {name}(text: str, limit: Annotated[int, "Characters to read, 1 or more"] = 1000) -> str:
    """{title}: not written yet. Say here what the tool does, when to use it and what comes back.

    Args:
        text: What it works on.
    """
    if limit < 1:
        # The model reads the message of an error, and can do better the next time.
        raise ValueError("limit must be 1 or more")
    # Put the work here.
    return f"{name} read {{len(text[:limit])}} characters"
'''

TEST = '''\
"""Tests of {name}: pytest {shown}. Files named test_*.py, conftest.py or _*.py are no tools to ba."""

import pytest

from {name} import {name}


def test_it_works() -> None:
    assert {name}("some words", 4) == "{name} read 4 characters"


def test_it_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        {name}("some words", 0)
'''


def check_name(name: str) -> None:
    """Raises UsageError when no tool, no file or no function can be called ``name``."""
    hint = "Such as word_count: lower-case letters, digits and _."
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} can't be the name of a tool.", hint)
    if name.startswith("test_") or name == "conftest":
        raise UsageError(f"ba treats a file named {name}.py as a test.", hint)
    if name in sys.stdlib_module_names:
        raise UsageError(f"Python already has a module {name}, which the tool's test would import instead.", hint)


def write_tool(folder: Path, name: str) -> tuple[Path, Path]:
    """The tool and its test, in ``folder``.

    Raises:
        UsageError: one of them is there. StorageError: it can't be written.
    """
    files = folder / f"{name}.py", folder / f"test_{name}.py"
    for file in files:
        if file.exists():
            raise UsageError(f"{file} is there already.", "Choose another name, or remove the file.")
    shown = ".ba/tools" if folder.parent.name == ".ba" else folder
    save_whole(files[0], TOOL.format(name=name, title=name.replace("_", " ").capitalize()), mode=0o644)
    save_whole(files[1], TEST.format(name=name, shown=shown), mode=0o644)
    return files
