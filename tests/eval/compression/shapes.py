"""Conversations in the shapes that agents have, made by a simulated agent that works on a simulated project.

The agent follows error lines, goes back to what it touched, and reports what it measured. Which facts its later steps
use is left to chance and to used.py; nobody chooses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from tests.eval.compression import filler


@dataclass(frozen=True)
class Step:
    """What the agent thinks and does, and what came of it."""

    thought: str
    action: str
    target: str
    result: list[str]
    old: str = ""
    new: str = ""


@dataclass(frozen=True)
class Round:
    request: str
    steps: list[Step]
    answer: str


@dataclass
class _Module:
    path: str
    functions: list[str]
    constant: str
    value: str


@dataclass
class _Work:
    """An agent at work; ``touched``: the modules in the order in which it came by them, newest last."""

    random: Random
    bulk: int
    modules: list[_Module] = field(default_factory=list[_Module])
    touched: list[_Module] = field(default_factory=list[_Module])
    figures: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        random = self.random
        for _ in range(24):
            names = [f"{random.choice(filler.VERBS)}_{random.choice(filler.NOUNS)}" for _ in range(4)]
            constant = f"{random.choice(filler.NOUNS)}_{random.choice(filler.NOUNS)}".upper()
            self.modules.append(_Module(filler.path(random), names, constant, str(random.randint(120, 9_800))))

    def rounds(self, count: int) -> Iterator[Round]:
        for _ in range(count):
            module, random = self._next(), self.random
            function = random.choice(module.functions)
            kind = random.choice(("ValueError", "KeyError", "TimeoutError"))
            self.errors.append(f"{kind}: {filler.words(random, 3)} in {function}")
            error = random.choice(self.errors[-3:])
            request = random.choice(
                (
                    f"{function} fails with `{error}`. Please find out why and repair it.",
                    f"Since yesterday {module.path} is slow. It must stay below {random.randint(200, 900)} ms.",
                    f"Raise {module.constant} where that is safe, and tell me what it changes.",
                )
            )
            steps = [self._step(module, error) for _ in range(random.randint(4, 9))]
            told = " ".join(random.sample(self.figures, min(3, len(self.figures))))
            yield Round(request, steps, f"{module.path}: {module.constant} is {module.value} now. Measured: {told}.")

    def _next(self) -> _Module:
        """Mostly what was touched lately, sometimes something else."""
        if self.touched and self.random.random() < 0.7:
            return self.touched[-1 - min(int(self.random.expovariate(0.3)), len(self.touched) - 1)]
        return self.random.choice(self.modules)

    def _step(self, module: _Module, error: str) -> Step:
        random = self.random
        here = module if random.random() < 0.6 else self._next()
        self.touched = [known for known in self.touched if known is not here] + [here]
        function = random.choice(here.functions)
        match random.choices(("read", "search", "test", "edit", "measure"), (30, 15, 20, 20, 15))[0]:
            case "read":
                body = filler.code(random, int(self.bulk * random.uniform(0.4, 1.6)))
                body.insert(len(body) // 2, f"{here.constant} = {here.value}")
                body.insert(len(body) // 3, f"def {function}(self, limit={here.constant}):")
                return Step(f"I read {here.path}.", "read", here.path, body)
            case "search":
                hits = [
                    f"{other.path}:{random.randint(3, 400)}:    {function}(" for other in random.sample(self.modules, 5)
                ]
                return Step(
                    f"Who calls {function}?", "search", function, [*hits, *filler.listing(random, self.bulk // 4)]
                )
            case "test":
                thought = f"Is it still this?\nE   {error}" if random.random() < 0.5 else "I run the tests."
                where = f'  File "{here.path}", line {random.randint(10, 400)}, in {function}'
                lines = [*filler.tests(random, self.bulk // 3), where, f"E   {error}", f"FAILED {here.path} - {error}"]
                return Step(thought, "run", f"pytest -k {function}", lines)
            case "edit":
                old, here.value = here.value, str(random.randint(120, 9_800))
                thought = f"{here.constant} in {here.path} is too small for {function}."
                change = (f"{here.constant} = {old}", f"{here.constant} = {here.value}")
                return Step(thought, "edit", here.path, [f"Changed {here.path}."], *change)
            case _:
                figure = f"{random.uniform(10, 4_000):.1f}"
                self.figures = [*self.figures[-5:], figure]
                lines = [*filler.log(random, self.bulk), f"{function}: p95 {figure} ms"]
                thought = f"Before it was {self.figures[0]} ms; I measure {function} again."
                return Step(thought, "run", f"python bench.py {function}", lines)


def _json(rounds: Iterator[Round]) -> Iterator[Message]:
    names = {"read": "read_file", "search": "grep", "run": "shell", "edit": "edit_file"}
    for number, item in enumerate(rounds):
        yield user(item.request)
        for place, step in enumerate(item.steps):
            given: dict[str, Any] = {"command" if step.action == "run" else "path": step.target}
            given |= {"old": step.old, "new": step.new} if step.old else {}
            call = ToolUse(f"call_{number}_{place}", names[step.action], given)
            yield _said(Text(step.thought), call)
            yield Message("user", (ToolOutput(call.id, "\n".join(step.result)),), origin="tool")
        yield _said(Text(item.answer))


def _as_text(rounds: Iterator[Round], written: Callable[[Step], str], told: Callable[[Step], str]) -> Iterator[Message]:
    """An agent that writes its calls as text, and reads their results as messages of the user."""
    answer = ""
    for item in rounds:
        request = f"{answer}{item.request}"
        for step in item.steps:
            yield user(request)
            yield _said(Text(written(step)))
            request = told(step)
        yield user(request)
        yield _said(Text(item.answer))


def _chat(rounds: Iterator[Round]) -> Iterator[Message]:
    """A chat without tools: the user pastes files and outputs."""

    def pasted(step: Step) -> str:
        body = "\n".join(step.result)
        return f"Here is what you asked for, {step.target}:\n\n```\n{body}\n```"

    def asked(step: Step) -> str:
        change = f"\n\nReplace `{step.old}` with `{step.new}` there." if step.old else ""
        return f"{step.thought} Please show me {step.target}.{change}"

    return _as_text(rounds, asked, pasted)


def _aider(rounds: Iterator[Round]) -> Iterator[Message]:
    def written(step: Step) -> str:
        if not step.old:
            return f"{step.thought}\n\n```bash\n{step.target}\n```"
        block = f"<<<<<<< SEARCH\n{step.old}\n=======\n{step.new}\n>>>>>>> REPLACE"
        return f"{step.thought}\n\n{step.target}\n```python\n{block}\n```"

    return _as_text(rounds, written, lambda step: "\n".join(["Tokens: 8.2k sent, 413 received.", *step.result]))


def _cline(rounds: Iterator[Round]) -> Iterator[Message]:
    names = {"read": "read_file", "search": "search_files", "run": "execute_command", "edit": "replace_in_file"}

    def written(step: Step) -> str:
        name, key = names[step.action], "command" if step.action == "run" else "path"
        change = f"\n<diff>\n{step.old}\n=======\n{step.new}\n</diff>" if step.old else ""
        return f"<thinking>{step.thought}</thinking>\n<{name}>\n<{key}>{step.target}</{key}>{change}\n</{name}>"

    def told(step: Step) -> str:
        body = "\n".join(step.result)
        return (
            f"[{names[step.action]} for '{step.target}'] Result:\n{body}\n<environment_details>\n</environment_details>"
        )

    return _as_text(rounds, written, told)


def _swe(rounds: Iterator[Round]) -> Iterator[Message]:
    names = {"read": "open ", "search": "search_dir ", "run": "", "edit": "edit "}

    def written(step: Step) -> str:
        change = f"\n{step.new}\nend_of_edit" if step.old else ""
        return f"DISCUSSION\n{step.thought}\n\n```\n{names[step.action]}{step.target}{change}\n```"

    def told(step: Step) -> str:
        return "\n".join([*step.result, f"(Open file: {step.target})", "bash-$"])

    return _as_text(rounds, written, told)


def _said(*blocks: Text | ToolUse) -> Message:
    return Message("assistant", tuple(blocks), origin="assistant")


TUNED: Mapping[str, tuple[Callable[[Iterator[Round]], Iterator[Message]], int]] = {
    "JSON tool calls": (_json, 60),
    "SEARCH/REPLACE": (_aider, 45),
    "long logs": (_json, 240),
}
"""The shapes that weights were chosen with: how they are written, and about how many lines a result has."""
KEPT_BACK: Mapping[str, tuple[Callable[[Iterator[Round]], Iterator[Message]], int]] = {
    "XML tool calls": (_cline, 60),
    "THOUGHT/ACTION": (_swe, 60),
    "chat with pasted files": (_chat, 90),
}
"""Those that were only measured with."""
SHAPES = {**TUNED, **KEPT_BACK}


def conversation(shape: str, seed: int, rounds: int = 9) -> list[Message]:
    """About fifty steps; the same seed gives the same work in every shape."""
    write, bulk = SHAPES[shape]
    return list(write(_Work(Random(seed), bulk).rounds(rounds)))
