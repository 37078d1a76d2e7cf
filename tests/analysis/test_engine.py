"""The engine's life: started late, ended from outside, restarted, confined; what it acknowledged is never lost."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ba_tui.core.effects import READING
from ba_tui.core.results import failed_how
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import DataRefused, EngineFailed, QueryRefused
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.processes.values import WorkerSettings
from tests.analysis.engines import engine_in, place_in

ENDLESS = "SELECT count(*) FROM range(100000000000) t(i) WHERE hash(i) = 7"


def helpers(folder: Path) -> list[psutil.Process]:
    """The helper processes whose data lies in ``folder``."""

    def words(process: psutil.Process) -> list[str]:
        try:
            return process.cmdline()
        except psutil.Error:
            return []

    children = psutil.Process().children(recursive=True)
    return [child for child in children if any(word.startswith(f"{folder}/") for word in words(child))]


async def test_nothing_starts_before_the_first_request(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    assert not engine.begun
    assert (await engine.catalogue()).datasets == ()
    assert helpers(tmp_path) == []
    assert not (tmp_path / "session").exists()
    await engine.close()


async def test_a_kill_costs_one_request_and_a_restart_nothing(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("id,mail\n1,a@b.org\n2,c@d.org\n")
    engine = engine_in(tmp_path)
    (dataset,) = await engine.register("sales.csv")
    first = await engine.query("SELECT max(id) AS m FROM sales")
    told = asyncio.Event()
    long = asyncio.create_task(engine.query(ENDLESS, on_progress=lambda _: told.set()))
    await told.wait()
    for helper in helpers(tmp_path):
        os.kill(helper.pid, signal.SIGKILL)
    with pytest.raises(EngineFailed, match="The data engine stopped in the middle of this request") as caught:
        await long
    assert caught.value.hint == "Run it again: datasets and results are kept."
    assert failed_how(caught.value.kind) == "failed"
    second = await engine.query("SELECT m + 1 AS n FROM R1")
    assert (second.handle, second.head) == ("R2", ((3,),))
    await engine.close()

    again = engine_in(tmp_path)
    catalogue = await again.catalogue()
    assert catalogue.datasets == (dataset,)
    assert catalogue.results == (first, second)
    profile = await again.profile("sales")
    assert [column.personal for column in profile.columns] == ["", "mail"]
    assert (await again.query("FROM R2")).handle == "R3"
    left = helpers(tmp_path)
    await again.close()
    _, alive = await asyncio.to_thread(psutil.wait_procs, left, 8)
    assert alive == []


async def test_a_file_that_may_not_be_read_is_not(tmp_path: Path) -> None:
    (tmp_path / ".env.csv").write_text("secret\n1\n")
    engine = engine_in(tmp_path, refused=lambda path: "it may contain secrets" if path.name.startswith(".env") else "")
    with pytest.raises(DataRefused, match=r"\.env\.csv may not be read: it may contain secrets"):
        await engine.register(".env.csv")
    with pytest.raises(DataRefused):
        await engine.register("*.csv")
    with pytest.raises(QueryRefused):
        await engine.query("FROM '.env.csv'")
    await engine.close()


async def test_the_sandbox_hides_secrets_and_lets_only_its_folder_be_written(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "state" / "analysis"
    work.mkdir()
    own.mkdir(parents=True)
    (work / "sales.csv").write_text("a\n1\n")
    (work / ".env").write_text("KEY=hunter2\n")
    sandbox = Sandbox(FileReach((work,), home=None), "auto")
    if sandbox.found.mechanism is None or not sandbox.found.mechanism.hides:
        pytest.skip("nothing here hides files")
    profile = replace(READING, writable=(own,), plain=True)
    worker = WorkerSettings(own, {"PATH": os.defpath}, confine=lambda: sandbox.confine(profile))
    engine = Analysis(replace(place_in(work, state=own), worker=worker))
    try:
        await engine.register("sales.csv")
        assert (await engine.query("FROM sales")).head == ((1,),)
        # Even where the rules let it through, it reads the mask.
        (secret,) = await engine.register(".env")
        assert "hunter2" not in str(await engine.page(secret.name))
    finally:
        await engine.close()
        sandbox.close()
    assert sorted(path.name for path in work.iterdir()) == [".env", "sales.csv"]


async def test_a_temporary_engine_leaves_nothing(tmp_path: Path) -> None:
    engine = Analysis(replace(place_in(tmp_path), temporary=True))
    assert (await engine.query("SELECT 1")).rows == 1
    assert engine.begun
    await engine.close()
    assert not (tmp_path / "session" / "analysis").exists()
