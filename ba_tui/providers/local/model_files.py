"""Where a local model is: ``local:PATH`` names a file, ``local:PACKAGE`` an installed Python package with one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.providers.local.gguf import CURE, read_gguf
from ba_tui.settings import LocalSettings

LOCAL = "local"
PREFIX = "local:"
MODULE = "xllamacpp"
INSTALL = "pip install 'ba-tui[local]'"
SUFFIX = ".gguf"
FREE = Prices(0, 0, 0, 0)


def local_model(name: str, settings: LocalSettings) -> ModelInfo:
    """The model that ``name`` stands for, with or without ``local:`` before it.

    Raises:
        UsageError: there is no such file, or it is no model.
    """
    path = model_file(name.removeprefix(PREFIX))
    facts = read_gguf(path)
    window = min(settings.window, facts.window or settings.window)
    return ModelInfo(
        f"{PREFIX}{path}", LOCAL, str(path),
        family=path.stem.lower(), window=window, max_output=max(256, window // 4), prices=FREE, tools="react",
        known=True,
    )  # fmt: skip


def model_file(name: str) -> Path:
    """The file that ``name`` means. Raises UsageError when it can't be one."""
    if not name.strip():
        raise UsageError("There is no model in “local:”.", CURE)
    path = Path(name).expanduser()
    if name.endswith(SUFFIX) or path.is_file():
        return path.absolute()
    if not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        raise UsageError(f"There is no model file {path}.", CURE)
    return _in_package(name)


def _in_package(name: str) -> Path:
    """The one model file of an installed package, which is not imported."""
    module = name.replace("-", "_").partition(".")[0]
    spec = find_spec(module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise UsageError(f"There is no model file and no installed package {name!r}.", CURE)
    found = sorted(path for folder in folders for path in Path(folder).rglob(f"*{SUFFIX}"))
    if len(found) != 1:
        what = f"{len(found)} model files" if found else "no model file"
        names = f" One of: {', '.join(map(str, found[:5]))}." if found else ""
        raise UsageError(f"The package {name} contains {what}.", f"{CURE}{names}")
    return found[0]


def lacking_library() -> str:
    """Why no local model can be asked, as one line; empty when one can."""
    if find_spec(MODULE) is None:
        return f"Local models need xllamacpp. Install it: {INSTALL}."
    return ""
