"""Regular expressions that are compiled late: like any other from the first use on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ba_tui
from ba_tui.core.text.patterns import regex

PACKAGE = Path(ba_tui.__file__).parent


def test_works_as_a_compiled_one() -> None:
    digits = regex(r"(?P<n>\d+)", re.ASCII)
    assert [found["n"] for found in digits.finditer("1 22 ٣")] == ["1", "22"]
    assert digits.sub("#", "a1b2") == "a#b#"
    assert digits.groups == 1
    assert digits.pattern == r"(?P<n>\d+)"
    assert regex(rb"a+").fullmatch(b"aaa")


def test_a_mistake_shows_at_the_first_use() -> None:
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")


COMPILE_ALL = """
import gc, importlib, sys
from ba_tui.core.text.patterns import regex

# Every object is looked at below: collecting them meanwhile would take a third of the time.
gc.disable()
for name in sys.argv[1:]:
    importlib.import_module(name)
found = [each for each in gc.get_objects() if type(each) is type(regex(""))]
for each in found:
    each.pattern
print(len(found))
"""


def test_every_pattern_that_ships_compiles() -> None:
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    written = sum(len(re.findall(r"\bregex\(", text)) for text in texts.values())
    # Those without a pattern load what is slow, such as the SDKs of vendors.
    places = [path.relative_to(PACKAGE.parent) for path, text in texts.items() if re.search(r"\bregex\(", text)]
    modules = [".".join(place.with_suffix("").parts).removesuffix(".__init__") for place in places]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COMPILE_ALL, *sorted(modules)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0.9 * written
