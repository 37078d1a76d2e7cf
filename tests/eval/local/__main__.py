"""``python -m tests.eval.local MODEL.gguf [--tasks FILE] [--only ID,ID] [--ways local,plain] [--keep FOLDER]``

Asks the model file once through the local provider and once, served by the same llama.cpp, as any OpenAI-compatible
endpoint with native tools; prints which tasks were done. Transcripts are kept in FOLDER. Needs the extra ``local``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ba_tui.providers.local_files import LocalPlace, LocalProcesses
from tests.eval.local.judging import TASKS, Task, read_tasks

CHECKOUT = Path(__file__).resolve().parents[3]
WAYS = ("local", "plain")
_SHARING = """
import os, sys
from contextlib import asynccontextmanager
from ba_tui.providers import local_files
async def load(self, place):
    return local_files.LocalAddress(os.environ["WARM_URL"], os.environ["PLAIN_KEY"])
@asynccontextmanager
async def watched(self, place):
    yield
local_files.LocalProcesses.load, local_files.LocalProcesses.watched = load, watched
from ba_tui.__main__ import main
sys.exit(main())
"""
"""ba whose local provider asks the server that runs already: no task waits for the model to load."""


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.eval.local", description=__doc__)
    parser.add_argument("model", type=Path, help="a model file in the GGUF format")
    parser.add_argument("--tasks", type=Path, default=TASKS)
    parser.add_argument("--only", default="", help="ids of tasks, joined by commas")
    parser.add_argument("--ways", default=",".join(WAYS), help="local, plain or both")
    parser.add_argument("--keep", type=Path, default=Path("local-transcripts"), help="the folder for transcripts")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one task")
    parser.add_argument("--warm", action="store_true", help="load the model once, for all tasks")
    given = parser.parse_args()
    tasks = [task for task in read_tasks(given.tasks) if not given.only or task.id in given.only.split(",")]
    given.keep.mkdir(parents=True, exist_ok=True)
    print("| task | " + " | ".join(given.ways.split(",")) + " |\n|---|" + "---|" * len(given.ways.split(",")))
    done = dict.fromkeys(given.ways.split(","), 0)
    served = await _Served.start(given) if "plain" in done or given.warm else None
    for task in tasks:
        cells: list[str] = []
        for way in done:
            config = served.config() if served and way == "plain" else f"local: {{threads: {given.threads}}}\n"
            model = "plain/model" if way == "plain" else f"local:{given.model.absolute()}"
            started = time.monotonic()
            kept = given.keep / f"{task.id}.{way}"
            start = ("-c", _SHARING) if given.warm and way == "local" else ("-m", "ba_tui")
            complaint = await asyncio.to_thread(_run, task, [*start, "--model", model], config, kept, given.timeout)
            done[way] += not complaint
            cells.append(f"{complaint or 'done'} ({time.monotonic() - started:.0f} s)")
        print(f"| {task.id} | {' | '.join(cells)} |", flush=True)
    print("| **all** | " + " | ".join(f"**{count} of {len(tasks)}**" for count in done.values()) + " |")
    if served:
        served.processes.end()


class _Served:
    """The model as any OpenAI-compatible server has it."""

    def __init__(self, processes: LocalProcesses, url: str, key: str) -> None:
        self.processes, self._url, self._key = processes, url, key

    @classmethod
    async def start(cls, given: argparse.Namespace) -> _Served:
        processes = LocalProcesses(Path(tempfile.gettempdir()))
        address = await processes.load(LocalPlace(given.model.absolute(), 16_384, given.threads))
        os.environ["PLAIN_KEY"], os.environ["WARM_URL"] = address.key, address.url
        return cls(processes, address.url, address.key)

    def config(self) -> str:
        way = f'{{kind: openai, base_url: "{self._url}", api_key_env: PLAIN_KEY, tools: native}}'
        return f"providers:\n  plain: {way}\nmax_output_tokens: 4096\n"


def _run(task: Task, start: Sequence[str], config: str, kept: Path, timeout: float) -> str:
    """Do one task in a folder of its own, with ``start`` as Python's arguments; what is wrong with the outcome."""
    with tempfile.TemporaryDirectory() as name:
        # Always the same place, as a server knows the beginning of a prompt again.
        home, folder = Path(name) / "home", Path(tempfile.gettempdir()) / f"ba-local-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("config/ba", "state", "data", "cache"):
            (home / part).mkdir(parents=True)
        folder.mkdir()
        task.lay_out(folder)
        (home / "config/ba/config.yaml").write_text(config, "utf-8")
        places = {f"XDG_{part.upper()}_HOME": str(home / part) for part in ("config", "state", "data", "cache")}
        command = [
            *(sys.executable, *start, "-p", "--output-format", "json", "--permission-mode", "auto"),
            *("--max-loops", "12", "--temperature", "0", task.ask),
        ]
        environment = {**os.environ, **places, "PYTHONPATH": str(CHECKOUT)}
        try:
            run = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
            )
            answer, printed = run.stdout, run.stdout + run.stderr
        except subprocess.TimeoutExpired as error:
            answer, printed = "", f"no end within {timeout:g} s\n{error.stdout or ''}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        (kept / "printed.txt").write_text(printed, "utf-8")
        for session in home.rglob("*.jsonl"):
            shutil.copy(session, kept)
        return task.complaint(_answer_of(answer), folder) or ("it took too long" if not answer else "")


def _answer_of(printed: str) -> str:
    import json

    try:
        found = json.loads(printed)
    except ValueError:
        return printed
    return str(found.get("result", found.get("answer", printed))) if isinstance(found, dict) else printed


if __name__ == "__main__":
    asyncio.run(main())
