"""The Python kernel under the real sandbox: what code can do, what it can't, how it ends, and what is said of that."""

from __future__ import annotations

import asyncio
import os
import re
import select
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from ba_tui.core.ports.datasets import Variable
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import UnknownTable
from ba_tui.features.data.analysis.kernel.client import KernelBounds, KernelPlace, PythonKernel, TableCalls
from ba_tui.features.data.analysis.kernel.values import CallResult, KernelFailed, ShownPicture, ShownTable, ShownText
from ba_tui.features.data.tools.python_kernels import PythonPlace
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.session import SessionPermissions
from ba_tui.resources import UserFolders
from ba_tui.settings import Settings
from ba_tui.settings.sections.data import AnalysisSettings
from tests.analysis.engines import place_in

pytestmark = pytest.mark.asyncio(loop_scope="module")
MEMORY_GB = 1.5
SECONDS = 30.0


class Session:
    """A workspace with an engine and kernels."""

    def __init__(self, base: Path) -> None:
        self.work = base / "work"
        self.work.mkdir()
        (self.work / "sales.csv").write_text("region,units\nNorth,12\nSouth,30\nNorth,5\n")
        (self.work / ".env").write_text("TOKEN=hunter2\n")
        settings = Settings(analysis=AnalysisSettings(python_memory_gb=MEMORY_GB), sandbox="required")
        where = UserFolders(*(base / name for name in ("config", "data", "cache", "state")))
        self.permissions = SessionPermissions(settings, where, Workspace(self.work), (), untrusted=False)
        self.engine = Analysis(place_in(self.work, state=base / "session" / "analysis"))
        self.place = PythonPlace(self.permissions, base / "session", settings, {"PATH": os.defpath})
        self.kernel = self.another()

    def another(self, **changed: Any) -> PythonKernel:
        return PythonKernel(lambda: replace(self.made(), **changed), self.engine)

    def made(self) -> KernelPlace:
        return self.place.made(self.engine)

    async def run(self, *lines: str, seconds: float = SECONDS) -> CallResult:
        return await self.kernel.run("\n".join(lines), seconds)

    async def text(self, *lines: str) -> str:
        """What code prints; it must not fail."""
        found = await self.run(*lines)
        assert not found.error, found.error
        return "".join(each.text for each in found.shown if isinstance(each, ShownText))

    async def failed(self, *lines: str) -> str:
        """The short traceback of code that fails."""
        found = await self.run(*lines)
        assert found.error
        return found.error.short


def end_kernel() -> None:
    """As the system does when it has no memory left."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # One that has ended already.
            if "kernel/program.py" in " ".join(child.cmdline()):
                ended = os.pidfd_open(child.pid)
                child.kill()
                select.select([ended], [], [], 10)
                os.close(ended)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Session]:
    made = Session(tmp_path_factory.mktemp("kernel"))
    yield made
    await made.kernel.close()
    await made.engine.close()
    await made.permissions.close()


async def test_variables_stay_and_the_last_value_is_shown(session: Session) -> None:
    assert await session.text("x = 5", "print('hello')") == "hello\n"
    assert await session.text("x + 1") == "6\n"
    assert Variable("x", "int", "5") in (await session.kernel.variables() or ())


async def test_an_error_is_short_for_the_model_and_whole_for_the_person(session: Session) -> None:
    found = await session.run("def inner():", "    return {}['key']", "inner()")
    assert found.error
    assert found.error.short == "cell, line 3: inner()\ncell, line 2, in inner: return {}['key']\nKeyError: 'key'"
    assert found.error.line == "KeyError: 'key'"
    assert found.error.full.startswith("Traceback (most recent call last)")
    assert "SyntaxError" in await session.failed("x = = 1")
    deep = await session.failed("def f(n):", "    return f(n - 1) if n else 1 / 0", "f(50)")
    assert "[46 outer frames left out]" in deep
    assert len(deep) < 1_000


async def test_code_reads_the_workspace_and_writes_its_own_folder_alone(session: Session) -> None:
    assert await session.text("open('sales.csv').readline()") == "'region,units\\n'\n"
    assert "Read-only file system" in await session.failed("open('made.txt', 'w')")
    assert "Read-only file system" in await session.failed("import os; os.remove('sales.csv')")
    found = await session.run("(ba.folder / 'made.txt').write_text('made')")
    assert found.files == (("made.txt", 4),)
    assert (session.place.files / "made.txt").read_text() == "made"


async def test_code_finds_no_secret_and_no_network(session: Session) -> None:
    assert "hunter2" not in await session.text("open('.env').read()")
    assert "Network is unreachable" in await session.failed(
        "import socket", "socket.create_connection(('192.0.2.1', 80), 1)"
    )
    home = str(Path.home())
    found = await session.text(f"import os; print(os.path.exists({home + '/.ssh'!r}), sorted(os.environ))")
    assert found.startswith("False")
    assert "JPY_PARENT_PID" not in found


async def test_there_is_no_input(session: Session) -> None:
    assert "No user can type an input here" in await session.failed("input('name? ')")
    assert "No user can type an input here" in await session.failed("import getpass; getpass.getpass()")


async def test_tables_come_by_name_and_go_back_as_results(session: Session) -> None:
    assert "NameError" in await session.failed("sale")
    await session.engine.register("sales.csv")
    found = await session.run("sales.units.sum()", "ba.table('sales', columns=['units'])")
    table = found.shown[-1]
    assert isinstance(table, ShownTable)
    assert (table.columns, table.rows, table.total) == (("units",), ((12,), (30,), (5,)), 3)
    assert "sales has no column 'unit'. It has: region, units." in await session.failed("ba.table('sales', ['unit'])")
    assert "There is no table sale." in await session.failed("ba.table('sale')")

    kept = await session.run("totals = sales.groupby('region').units.sum()", "ba.keep(totals, 'by region')")
    (result,) = kept.kept
    assert (result.handle, result.head) == ("R1", (("North", 17), ("South", 30)))
    assert [each.name for each in result.columns] == ["region", "units"]
    assert result.provenance.datasets[0].name == "sales"
    assert isinstance(kept.shown[-1], ShownTable)
    assert kept.shown[-1].handle == "R1"
    assert (await session.engine.query("SELECT max(units) AS m FROM R1")).head == ((30,),)
    assert "takes a DataFrame" in await session.failed("ba.keep([1, 2])")
    assert not list(session.engine.inbox.glob("python-*"))
    assert not list((session.place.files / ".kept").iterdir())


async def test_figures_become_files(session: Session) -> None:
    found = await session.run("import matplotlib.pyplot as plt", "plt.plot([1, 2, 3]);")
    assert found.shown == (ShownPicture("figure-1.png"),)
    assert (session.place.files / "figure-1.png").read_bytes().startswith(b"\x89PNG")


async def test_a_flood_of_output_is_cut_in_the_middle(session: Session) -> None:
    text = await session.text("print('a' * 4_000_000 + 'end')")
    assert len(text) < 2_100_000
    assert text.endswith("end\n")
    assert re.search(r"\n\[… [\d,]+ characters left out …\]\n", text)


async def test_late_code_is_interrupted_and_variables_stay(session: Session) -> None:
    await session.run("kept = 1")
    found = await session.run("print('begun')", "while True: pass", seconds=0.3)
    assert found.late
    assert found.shown == (ShownText("begun\n"),)
    assert await session.text("kept") == "1\n"


async def test_a_cancelled_call_is_interrupted_and_variables_stay(session: Session) -> None:
    await session.run("before = 1")
    heard = asyncio.Event()
    code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    task = asyncio.create_task(session.kernel.run(code, SECONDS, lambda _: heard.set()))
    await heard.wait()
    assert await session.kernel.variables() is None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.text("before") == "1\n"


async def test_memory_is_limited(session: Session) -> None:
    assert "MemoryError" in await session.failed("large = bytearray(2_000_000_000)")


async def test_a_killed_kernel_is_one_failed_call_and_a_reset_is_said(session: Session) -> None:
    await session.engine.register("sales.csv")
    with pytest.raises(KernelFailed, match=r"in the middle of this call \(SIGKILL\)\. Its variables are gone; tables"):
        await session.run("import os; lost = 1; os.kill(os.getpid(), 9)")
    assert not session.kernel.running
    assert await session.kernel.variables() == ()
    fresh = await session.run("len(ba.table('sales')), 'lost' in globals()")
    assert (fresh.shown, fresh.notes) == ((ShownText("(3, False)\n"),), ())

    assert await session.kernel.reset()
    assert not await session.kernel.reset()
    # It may also end between two calls.
    again = await session.run("1")
    assert again.notes == ("Python was reset. Its variables are gone; tables are still there.",)
    await asyncio.to_thread(end_kernel)
    after = await session.run("1")
    assert after.notes == ("Python ended since the last call. Its variables are gone; tables are still there.",)


async def test_a_question_that_nobody_hears_yet_is_asked_again(session: Session) -> None:
    await session.engine.register("sales.csv")
    code = """
kernel, first = get_ipython().kernel, [True]
send = kernel.session.send
def to_nobody(stream, kind, *args, **named):
    if kind == "input_request" and first:
        first.clear()
        named["ident"] = [b"not connected"]
    return send(stream, kind, *args, **named)
kernel.session.send = to_nobody
len(ba.table("sales")), first
"""
    assert (await session.run(code)).shown == (ShownText("(3, [])\n"),)


async def test_output_that_comes_long_after_the_reply_is_shown(session: Session) -> None:
    late = "get_ipython().kernel.iopub_thread.schedule(lambda: __import__('time').sleep(1.2))"
    assert (await session.run(f"{late}; 'here'")).shown == (ShownText("'here'\n"),)


async def test_a_secret_that_is_written_anew_is_hidden_again(session: Session) -> None:
    await session.run("1")
    # As editors save: another file under the same name.
    (session.work / ".env.new").write_text("TOKEN=hunter3\n")
    (session.work / ".env.new").rename(session.work / ".env")
    found = await session.run("open('.env').read()")
    assert found.notes == (
        "Files with secrets changed, so Python began anew to keep them hidden. "
        "Its variables are gone; tables are still there.",
    )
    assert "hunter3" not in str(found.shown)


async def test_a_python_that_can_not_start_says_why(session: Session) -> None:
    broken = session.work / "python"
    broken.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'ipykernel'\" >&2\nexit 1\n")
    broken.chmod(0o755)
    kernel = session.another(interpreter=broken)
    with pytest.raises(
        KernelFailed, match=r"^Python could not start: ModuleNotFoundError: No module named 'ipykernel'$"
    ):
        await kernel.run("1", SECONDS)
    await kernel.close()


async def test_a_table_that_is_too_large_says_what_to_do(session: Session) -> None:
    await session.engine.register("sales.csv")
    calls = TableCalls(session.engine, KernelBounds(session.place.files, 100), {}, "")
    with pytest.raises(UnknownTable, match="sales has 3 rows, about") as raised:
        await calls._table("sales", None)
    assert "Aggregate or filter it with query_data" in raised.value.hint
    assert "ba.table('sales', columns=[...])" in raised.value.hint


async def test_a_session_without_tables_says_so(session: Session, tmp_path: Path) -> None:
    calls = TableCalls(Analysis(place_in(tmp_path)), KernelBounds(tmp_path, 100), {}, "")
    with pytest.raises(UnknownTable, match="This session has no tables yet"):
        await calls._table("R1", None)
