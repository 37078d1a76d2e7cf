"""Which files of a project the commands of its hooks and servers name: they run, so they count as those do.

Only what stands in the commands is found, not what those files load in turn. Nothing is run here.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, cast

import yaml

from ba_tui.core.text.jsonc import read_jsonc
from ba_tui.core.text.patterns import regex
from ba_tui.resources import read_regular

LARGEST = 1_000_000
MOST_WORDS = 500
MOST_MATCHES = 100

_FORMATS = (".json", ".yaml", ".yml")
_SAID = frozenset({"command", "args"})
_FOLDER = regex(
    r"[\"']?(?:\$\{?(?:CLAUDE_PROJECT_DIR|BA_PROJECT_DIR|PWD)\b[^}/\s\"']*\}?|\$\(pwd\)"
    r"|\$\(git rev-parse --show-toplevel\))[\"']?"
)
_BREAKS = regex(r"[\s'\"`;|&()<>=,]+")
_RECIPES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
}
"""Where programs look up what a word means to them."""
_STARTS = ("__main__.py", "index.js", "index.mjs", "index.cjs", "index.ts")


def named_in(root: Path, file: Path) -> Iterator[Path]:
    """The files below ``root`` that the commands in ``file`` name, as those would find them from ``root``."""
    try:
        raw = read_regular(file, LARGEST + 1) if file.suffix in _FORMATS else b""
    except OSError:
        return
    if len(raw) > LARGEST:
        return
    yield from named_by(root, _commands(raw, file.suffix == ".json"))


def named_by(root: Path, commands: Iterable[str]) -> Iterator[Path]:
    """The files below ``root`` that ``commands`` name, as those would find them from ``root``."""
    found = [word for command in commands for word in _words(command)]
    words = list(dict.fromkeys(found))[:MOST_WORDS]
    folders = [root, *(folder for word in words if (folder := root / word) != root and _is_folder(folder))]
    for word in words:
        for name in (word, *_RECIPES.get(word, ()), *_module(word)):
            for folder in folders:
                yield from (each for each in _lying(folder, name) if each.is_relative_to(root))


@lru_cache(maxsize=32)
def _commands(raw: bytes, is_json: bool) -> Sequence[str]:
    """What stands under ``command`` and ``args`` at any depth."""
    try:
        data: Any = read_jsonc(raw.decode("utf-8", "replace")) if is_json else yaml.safe_load(raw)
    except (ValueError, RecursionError, yaml.YAMLError):
        return ()
    with suppress(RecursionError):
        return tuple(_said(data, said=False))
    return ()


def _said(value: Any, *, said: bool) -> Iterator[str]:
    if isinstance(value, str) and said:
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _said(item, said=said)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            yield from _said(item, said=key in _SAID)


def _words(command: str) -> Iterator[str]:
    """Words and pieces of words, the project's folder taken away from their front."""
    text = _FOLDER.sub(".", command)
    try:
        whole = shlex.split(text)
    except ValueError:
        whole = []
    yield from (word for word in (*whole, *_BREAKS.split(text)) if word and "\0" not in word)


def _module(word: str) -> Iterator[str]:
    """The file that ``python -m`` means by a name."""
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", word):
        path = word.replace(".", "/")
        yield f"{path}.py"
        yield f"{path}/__main__.py"


def _lying(folder: Path, name: str) -> Iterator[Path]:
    try:
        if re.search(r"[*?\[]", name) and not name.startswith("/"):
            yield from islice((each for each in folder.glob(name) if each.is_file()), MOST_MATCHES)
            return
        path = Path(os.path.normpath(folder / name))
        if path.is_file():
            yield path
        elif _is_folder(path) and path != folder:
            yield from (path / start for start in _STARTS if (path / start).is_file())
    except (OSError, ValueError, NotImplementedError):
        return


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
