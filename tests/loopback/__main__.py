"""Run the model server on its own: prints its URL and serves until it is stopped.

The script is a YAML file as ba_tui.providers.scripted describes it, or N tool calls followed by an answer.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from ba_tui.providers.scripted import ModelScript, ScriptedCall, Step, read_script
from tests.loopback.server import ModelServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.loopback", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, help="YAML script; without one, --calls and --size make it")
    parser.add_argument("--calls", type=int, default=0, help="so many requests are answered by a call")
    parser.add_argument("--tool", default="now", help="the tool they call")
    parser.add_argument("--size", type=int, default=100, help="characters of the last answer")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes per second of every stream; 0: no limit")
    given = parser.parse_args()
    call, line = Step(calls=(ScriptedCall(given.tool),)), "The quick brown fox jumps over the lazy dog. "
    text = (line * (given.size // len(line) + 1))[: given.size]
    made = ModelScript((call,) * given.calls, last=Step(say=text))
    script = read_script(given.script) if given.script else made
    with ModelServer(script, port=given.port, rate=given.rate) as server:
        print(server.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
