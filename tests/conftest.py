"""What every test may use: a home of its own, and the real material beside the checkout."""

from __future__ import annotations

import compileall
import gc
import os
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.noticing import leaks, reports

CHECKOUT = Path(__file__).resolve().parent.parent

LONGEST_ID = 60
"""Characters or bytes of a parameter that name its test."""

# Compiled modules are kept, whatever the environment says: else every process that a test starts compiles all anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The suite tries the same examples at every run and on any machine, however busy: what passed once passes again.
# To look for new ones: HYPOTHESIS=search pytest tests/...
# A test names a number of its own only where one example is dear, or where more of them guard what may run.
SPARED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("search", max_examples=2_000, deadline=None, database=None, suppress_health_check=SPARED)
settings.register_profile("steady", settings.get_profile("search"), max_examples=50, derandomize=True)
PROFILE = os.environ.get("HYPOTHESIS", "steady")
settings.load_profile(PROFILE)
if PROFILE == "steady":
    # Constants of the modules that a worker happens to have loaded are no examples: they were others in each worker,
    # and it took seconds to read them.
    providers._get_local_constants = lambda: providers._local_constants


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value is told by its beginning or its size: ids of megabytes went into every report, and into the
    environment of every process that a test started. One with a time in it was another one in each worker."""
    if isinstance(val, str) and len(val) > LONGEST_ID:
        return f"{val[:LONGEST_ID]}… {len(val)} characters"
    return f"{len(val)} bytes" if isinstance(val, bytes) and len(val) > LONGEST_ID else None


def pytest_configure(config: pytest.Config) -> None:
    """Leaks are looked for around all other fixtures.

    A shell starts what runs in the background with SIGINT ignored, and ba keeps to that; tests send it.

    Helper processes keep no compiled modules: each of the hundreds that the tests start compiled its own anew."""
    config.pluginmanager.register(leaks, "leaks")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    given = config.option
    if hasattr(config, "workerinput") and not (given.durations or given.xmlpath or given.verbose > 0):
        config.pluginmanager.register(reports, "fewer-reports")
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(CHECKOUT / "ba_tui", quiet=2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Modules and tests stay until the end: to look for garbage among them took half of the time of collecting."""
    gc.disable()
    if session.config.args == session.config.getini("testpaths"):
        _import_some(getattr(session.config, "workerinput", {}))


def _import_some(worker: Mapping[str, Any]) -> None:
    """Let each worker begin with other modules of a checkout that was never compiled, and find the rest compiled. When
    all begin with the same, each compiles everything. An error is told when the module is collected."""
    if not worker:
        return
    modules = sorted((CHECKOUT / "tests").rglob("test_*.py"))
    for module in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(module.relative_to(CHECKOUT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def outside_data() -> Path:
    """Real material that lies beside the checkout; tests that need it are skipped where it is absent."""
    folder = CHECKOUT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"outside data is not here: {folder.name}/ beside the checkout")
    return folder


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes folders by counting. ``mktemp`` looks at all that are there before it makes one more.

    A pytest that a test starts has its folders in those of this run: else it deletes what earlier runs of the whole
    suite left, which took longer than a test may."""
    base = tmp_path_factory.getbasetemp()
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(base)
    counts: defaultdict[str, Iterator[int]] = defaultdict(count)

    def new(name: str) -> Path:
        folder = base / f"{name}{next(counts[name.lower()])}"
        folder.mkdir(0o700)
        return folder

    return new


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, new_folder: Callable[[str], Path]) -> Path:
    return new_folder(re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture
def empty_stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input that ends at once; it is a real file, as that of a process always is."""
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield


@pytest.fixture(autouse=True)
def ba_home(new_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's own state, and none finds a key."""
    home = new_folder("ba-home")
    monkeypatch.setenv("BA_HOME", str(home))
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "BA_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return home
