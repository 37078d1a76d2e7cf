"""What counting tokens costs: a message more in a long conversation, and a megabyte beside the library's own speed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ba_tui.core.messages import Message, user
from ba_tui.providers.token_counter import DynamicTokenCounter, estimate_tokens
from ba_tui.providers.token_encodings import Encodings
from tests.bench.figures import Effort, Figure, median

MESSAGES = 10_000
MEGABYTE = 1_000_000
LIBRARY = """
import sys, tiktoken
text = open(sys.argv[1], encoding="utf-8").read()
print(len(tiktoken.get_encoding("o200k_base").encode_ordinary(text)))
"""


def tokens(effort: Effort) -> Iterator[Figure]:
    """CPU of this process, of ``ba tokens``, and of a process that only counts with the library."""
    counter = DynamicTokenCounter()
    messages: list[Message] = [user(f"message {number} says a few words of no weight") for number in range(MESSAGES)]
    counter.conversation(messages)
    spent: list[float] = []
    for number in range(effort.keys):
        messages.append(user(f"one more, number {number}, with as many words as people write in one go"))
        spent.append(_cpu(lambda: counter.conversation(messages)))
    yield Figure("token count, one message more in 10 000, CPU", 1_000 * median(spent), "ms", 1.0)
    source = "".join(path.read_text("utf-8") for path in sorted(Path(__file__).parents[2].glob("ba_tui/**/*.py")))
    text = (source * (MEGABYTE // len(source) + 1))[:MEGABYTE]
    bare = [_cpu(lambda: estimate_tokens(text)) for _ in range(effort.starts)]
    yield Figure("estimated tokens of 1 MB, CPU", 1_000 * median(bare), "ms", 16.0, "what the screen can wait for")
    with tempfile.TemporaryDirectory() as place:
        yield from _megabyte(Path(place), text, effort)


def _megabyte(place: Path, text: str, effort: Effort) -> Iterator[Figure]:
    """``ba tokens`` on a file of 1 MB beside the library alone, both with what they need in their cache."""
    file, cache = place / "text", place / "home" / "cache" / "encodings"
    file.write_text(text, "utf-8")
    Encodings(cache).load("o200k_base")
    env = {**os.environ, "BA_HOME": str(place / "home"), "TIKTOKEN_CACHE_DIR": str(cache)}
    ours = [sys.executable, "-m", "ba_tui", "tokens", str(file), "--model", "gpt-4o"]
    theirs = [sys.executable, "-c", LIBRARY, str(file)]
    measured = [(_process(ours, env), _process(theirs, env)) for _ in range(effort.starts)]
    own, library = median([one for one, _ in measured]), median([one for _, one in measured])
    target = f"the library alone takes {1_000 * library:.0f} ms; half a second for our start"
    yield Figure("ba tokens on 1 MB, CPU of the whole process", 1_000 * own, "ms", 1_000 * library + 500, target)


def _cpu(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _process(command: list[str], env: dict[str, str]) -> float:
    before = os.times()
    subprocess.run(command, env=env, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
