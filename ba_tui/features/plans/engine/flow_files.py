"""Parses workflow files: YAML into a Flow, or a list of faults, each with file, line and what was expected.

``flow_checks`` checks later whether tools and references exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

from ba_tui.core.messages import clean_json
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import did_you_mean, suggestion
from ba_tui.features.plans.engine.workflows import Conditional, Flow, Invocation, Loop, OnError, WorkflowStep, problem
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import KeyPath, Problem, SettingsDocument, read_document, shown

NAME = regex(r"[a-z][a-z0-9_-]{0,63}")
RETRY = regex(r"retry\s*\(\s*([0-9]{1,2})\s*\)")
MAX_RETRIES = 10
FLOW_KEYS = ("name", "description", "version", "parameters", "output", "output_schema", "steps")
ALWAYS = ("id", "needs", "approval")
KEYS: dict[str, tuple[str, ...]] = {
    "tool": (*ALWAYS, "tool", "args", "save_as", "on_error", "undo"),
    "flow": (*ALWAYS, "flow", "args", "save_as", "on_error", "undo"),
    "if": (*ALWAYS, "if", "then", "else"),
    "for_each": (*ALWAYS, "for_each", "as", "steps", "save_as"),
    "approval": ALWAYS,
}
KINDS = "tool, flow, if, for_each or approval"


def load_flows(folders: Sequence[Path], read: Read = read_regular) -> tuple[dict[str, Flow], tuple[Problem, ...]]:
    """Return the flows of every ``*.yaml`` in the folders by name; a later folder wins. Broken files are only
    reported.
    """
    flows: dict[str, Flow] = {}
    problems: list[Problem] = []
    for folder in folders:
        here: dict[str, Flow] = {}
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            if path.name.startswith("_"):
                continue
            flow, wrong = read_flow(path, read)
            problems += wrong
            if flow is None:
                continue
            if twin := here.get(flow.name):
                text = f"{twin.document.path} has the name {flow.name!r} already; expected one of its own"
                problems.append(flow.problem(("name",), text))
            else:
                here[flow.name] = flow
        flows |= here
    return flows, tuple(problems)


def read_flow(path: Path, read: Read = read_regular) -> tuple[Flow | None, tuple[Problem, ...]]:
    """Return the flow in ``path``, or all faults of the file."""
    document = read_document(path, read)
    if document is None:
        return None, (Problem(str(path), "there is no such file"),)
    return flow_in(document)


def flow_in(document: SettingsDocument) -> tuple[Flow | None, tuple[Problem, ...]]:
    """Return the flow in a parsed document, or all its faults."""
    reading = _FlowParser(document)
    flow = None if document.broken else reading.flow()
    problems = tuple(sorted((*document.problems, *reading.problems), key=lambda problem: problem.line))
    return (None if problems else flow), problems


class _FlowParser:
    """Walks over one document. Unreadable values are reported and skipped, so that one run finds all faults."""

    def __init__(self, document: SettingsDocument) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self._ids: dict[str, KeyPath] = {}

    def wrong(self, at: KeyPath, text: str) -> None:
        self.problems.append(problem(self.document, at, text))

    def flow(self) -> Flow:
        data = self.document.data
        self._known((), data, FLOW_KEYS)
        for key in ("name", "description", "steps"):
            if key not in data:
                self.wrong((key,), "is missing; expected name, description and a list of steps")
        name = self._text(("name",), data.get("name", "unnamed"))
        if name and not NAME.fullmatch(name):
            self.wrong(("name",), f"expected small letters, digits, _ and -, got {_got(name)}")
        version = data.get("version", "1")
        if isinstance(version, bool) or not isinstance(version, str | int | float):
            self.wrong(("version",), f"expected a version such as '1.2', got {_got(version)}")
        schema = data.get("output_schema")
        return Flow(
            name=name,
            description=self._text(("description",), data.get("description", "")).strip(),
            parameters=self._parameters(data.get("parameters", {})),
            steps=self._steps(("steps",), data["steps"]) if "steps" in data else (),
            document=self.document,
            version=str(version),
            output=self._plain(("output",), data.get("output")),
            output_schema=None if schema is None else self._mapping(("output_schema",), schema),
        )

    def _parameters(self, value: Any) -> dict[str, Any]:
        """Return the parameters as a JSON Schema of an object; unknown parameters are refused unless the schema allows
        them.
        """
        schema = self._mapping(("parameters",), value)
        if schema and "properties" not in schema and schema.get("type") != "object":
            self.wrong(("parameters",), "expected a JSON Schema: `type: object` with the parameters in `properties:`")
        return {"type": "object", "properties": {}, "additionalProperties": False, **schema}

    def _steps(self, at: KeyPath, value: Any) -> tuple[WorkflowStep, ...]:
        items = cast("list[Any]", value) if isinstance(value, list) else []
        if not items:
            self.wrong(at, f"expected a list of steps, got {_got(cast('object', value))}")
        return tuple(step for index, item in enumerate(items) if (step := self._step((*at, index), item)))

    def _step(self, at: KeyPath, value: Any) -> WorkflowStep | None:
        kind = self._kind(at, value)
        if kind is None:
            return None
        self._known(at, value, KEYS[kind], f"a step with {kind!r}")
        return WorkflowStep(
            at=at,
            id=self._id(at, value),
            named="id" in value,
            work=self._work(kind, at, value),
            approval=self._text((*at, "approval"), value.get("approval", "")),
            save_as=self._variable((*at, "save_as"), value.get("save_as", "")),
            on_error=self._on_error((*at, "on_error"), value.get("on_error", "stop")),
            undo=self._undo((*at, "undo"), value["undo"]) if "undo" in value else (),
            needs=self._needs((*at, "needs"), value["needs"]) if "needs" in value else None,
        )

    def _kind(self, at: KeyPath, value: Any) -> str | None:
        if not isinstance(value, dict):
            self.wrong(at, f"expected a step with {KINDS}, got {_got(value)}")
            return None
        kinds = [kind for kind in ("tool", "flow", "if", "for_each") if kind in value]
        if len(kinds) > 1:
            self.wrong(at, f"expected one of {KINDS}, got {' and '.join(kinds)} together; put one into the other")
            return None
        if not kinds and "approval" not in value:
            keys = [str(key) for key in cast("dict[Any, Any]", value)]
            meant = next((said for key in keys if (said := did_you_mean(key, KEYS))), "")
            self.wrong(at, f"the step does nothing; expected {KINDS}, got {', '.join(keys) or 'no key'}{meant}")
            return None
        return kinds[0] if kinds else "approval"

    def _work(self, kind: str, at: KeyPath, value: dict[str, Any]) -> Invocation | Conditional | Loop | None:
        match kind:
            case "tool" | "flow":
                name = self._text((*at, kind), value[kind])
                return Invocation(name, self._mapping((*at, "args"), value.get("args", {})), kind == "flow")
            case "if":
                if not isinstance(value["if"], bool | str):
                    self.wrong((*at, "if"), f"expected an expression such as {{{{ files }}}}, got {_got(value['if'])}")
                if "then" not in value:
                    self.wrong((*at, "if"), "expected `then:` with a list of steps beside it")
                then = self._steps((*at, "then"), value["then"]) if "then" in value else ()
                return Conditional(
                    value["if"], then, self._steps((*at, "else"), value["else"]) if "else" in value else ()
                )
            case "for_each":
                over = value["for_each"]
                if not isinstance(over, str | list):
                    self.wrong((*at, "for_each"), f"expected a list or an expression, got {_got(over)}")
                if "steps" not in value:
                    self.wrong((*at, "for_each"), "expected `steps:` with a list of steps beside it")
                item = self._variable((*at, "as"), value.get("as", "item"))
                body = self._steps((*at, "steps"), value["steps"]) if "steps" in value else ()
                return Loop(self._plain((*at, "for_each"), over), item, body)
            case _:
                return None

    def _id(self, at: KeyPath, value: dict[str, Any]) -> str:
        """Return the step's own id, or one made of its position: ``2``, ``2.then.1``."""
        if "id" not in value:
            return ".".join(str(part + 1) if isinstance(part, int) else part for part in at[1:])
        id = self._variable((*at, "id"), value["id"])
        if id in self._ids:
            line = self.document.line(self._ids[id])
            self.wrong((*at, "id"), f"the step in line {line} has the id {id!r} already; expected one of its own")
        self._ids.setdefault(id, (*at, "id"))
        return id

    def _needs(self, at: KeyPath, value: Any) -> tuple[str, ...]:
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        if wrong := [item for item in items if not isinstance(item, str)]:
            self.wrong(at, f"expected a list of step ids, got {_got(wrong[0])}")
            return ()
        return tuple(items)

    def _on_error(self, at: KeyPath, value: Any) -> OnError:
        if isinstance(value, list):
            return self._steps(at, cast("list[Any]", value))
        if value == "stop":
            return "stop"
        if value == "continue":
            return "continue"
        retry = RETRY.fullmatch(value.strip()) if isinstance(value, str) else None
        if retry and 1 <= int(retry[1]) <= MAX_RETRIES:
            return int(retry[1])
        expected = f"expected stop, continue, retry(1) to retry({MAX_RETRIES}), or a list of steps to run in its place"
        self.wrong(at, f"{expected}, got {_got(value)}")
        return "stop"

    def _undo(self, at: KeyPath, value: Any) -> tuple[WorkflowStep, ...]:
        if isinstance(value, list):
            return self._steps(at, cast("list[Any]", value))
        step = self._step(at, value)
        return (step,) if step else ()

    def _variable(self, at: KeyPath, value: Any) -> str:
        text = self._text(at, value)
        if text and (not text.isidentifier() or text.startswith("_")):
            self.wrong(at, f"expected a name of letters, digits and _, got {_got(text)}")
            return ""
        return text

    def _text(self, at: KeyPath, value: Any) -> str:
        if isinstance(value, str):
            return value
        self.wrong(at, f"expected a text, got {_got(value)}")
        return ""

    def _mapping(self, at: KeyPath, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return cast("dict[str, Any]", self._plain(at, value))
        self.wrong(at, f"expected a mapping of names to values, got {_got(value)}")
        return {}

    def _plain(self, at: KeyPath, value: Any) -> Any:
        """Return ``value`` as JSON values; a date, which YAML makes of ``2026-01-31``, becomes text again."""
        match value:
            case dict():
                return {key: self._plain((*at, key), item) for key, item in cast("dict[str, Any]", value).items()}
            case list():
                items = enumerate(cast("list[Any]", value))
                return [self._plain((*at, index), item) for index, item in items]
            case date():
                return value.isoformat()
            case None | str() | bool() | int() | float() if clean_json(value) == value:
                return value
            case _:
                self.wrong(at, f"expected text, a number, yes or no, a list or a mapping, got {_got(value)}")
                return None

    def _known(self, at: KeyPath, value: dict[str, Any], known: Iterable[str], what: str = "a workflow") -> None:
        names = tuple(known)
        for key in value:
            if key not in names:
                self.wrong((*at, key), f"unknown key; {suggestion(key, names, f'{what} knows')}")


def _got(value: object) -> str:
    if value == []:
        return "an empty one"
    return "a mapping" if isinstance(value, dict) else shown(value)
