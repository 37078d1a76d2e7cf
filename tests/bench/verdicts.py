"""What a verdict on a shell command costs: a line as agents write them, and a script of 10 KB.

The policy has the bundled rules and a few of a person's; nothing is run, but files that words name are looked up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.answers import bundled_rules
from ba_tui.permissions.paths import Workspace, held_paths
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import JudgedCall
from tests.bench.figures import Effort, Figure, median

SCRIPT_BYTES = 10_240
RULES = ("shell(git add:*)", "shell(uv run pytest:*)", "shell(make check)", "shell(ruff check:*)", "edit_file(src/**)")
TYPICAL = (
    "git status --short && git log --oneline -5",
    "cd src && grep -rn --include='*.py' 'def main' . | head -20",
    "uv run pytest -q tests/unit -k 'not slow' 2>&1 | tail -30",
    "find . -name '*.py' -not -path './build/*' | xargs wc -l | sort -rn | head",
    "sed -n '1,80p' src/module_1.py; cat README.md",
    "git diff HEAD~1 -- src/module_2.py > /tmp/last.diff",
)
STANZAS = (
    "# Step {n}: look at what changed",
    'echo "== step {n}: $(date +%H:%M) =="',
    'for file in src/module_{n}.py tests/test_{n}.py; do\n  wc -l "$file"\n  grep -n import "$file" | head -5\ndone',
    "if [ -f build/report_{n}.txt ]; then\n  cat build/report_{n}.txt | sort | uniq -c > build/counts_{n}.txt\nfi",
    "git log --oneline -n {n} -- src/module_{n}.py | cut -d' ' -f1",
    "export STEP={n}; make check || echo 'step {n} failed' >&2",
    "curl -fsS https://example.org/data/{n}.json -o build/data_{n}.json && jq '.items[] | .name' build/data_{n}.json",
    "case \"$STEP\" in\n  1|2) ls -la src ;;\n  *) find src -name '*_{n}.py' -type f ;;\nesac",
    "awk -F, '{{ total += $3 }} END {{ print total }}' build/data_{n}.csv | tee build/total_{n}.txt",
    "python3 scripts/merge.py --input build/data_{n}.json --output build/merged_{n}.json --level {n}",
    "cp -r build/merged_{n}.json dist/ && rm -f build/tmp_{n}_*.log",
    "cat <<'NOTE' >> build/notes.md\nStep {n} is done; see build/merged_{n}.json\nNOTE",
)


def script() -> str:
    """10 KB of what build scripts hold, no stanza twice."""
    lines: list[str] = ["set -euo pipefail"]
    stanzas = enumerate(cycle(STANZAS))
    while sum(len(line) + 1 for line in lines) < SCRIPT_BYTES:
        number, stanza = next(stanzas)
        lines.append(stanza.format(n=number // len(STANZAS)))
    return "\n".join(lines)[:SCRIPT_BYTES].rsplit("\n", 3)[0]


async def _nothing(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("")


SHELL = Tool("shell", "", {}, _nothing, Effect.EXECUTE, facts=ToolFacts(target="command"))


def verdicts(effort: Effort) -> Iterator[Figure]:
    """CPU of ``Policy.judge`` as the guard calls it, when everything was loaded by calls before."""
    with TemporaryDirectory() as place:
        root = Path(place)
        _fill(root)
        rules = [*bundled_rules(), *(RuleLine(rule, "allow", "bench") for rule in RULES)]
        policy = Policy(Workspace(root), rules)
        lines = [_cpu(policy, command) for command in islice(cycle(TYPICAL), effort.keys * len(TYPICAL))]
        yield Figure("verdict on a typical command, CPU", 1_000 * median(lines[len(TYPICAL) :]), "ms", 2.0)
        long = script()
        scripts = [_cpu(policy, long) for _ in range(effort.keys)]
        yield Figure("verdict on a script of 10 KB, CPU", 1_000 * median(scripts[1:]), "ms", 50.0)


def _fill(root: Path) -> None:
    for folder in ("src", "tests", "build", "dist", "scripts", ".git"):
        (root / folder).mkdir()
    for number in range(20):
        (root / "src" / f"module_{number}.py").touch()
        (root / "build" / f"tmp_{number}_a.log").touch()


def _cpu(policy: Policy, command: str) -> float:
    start = time.process_time()
    with held_paths():
        policy.judge(JudgedCall(SHELL, {"command": command}, policy.workspace.root))
    return time.process_time() - start
