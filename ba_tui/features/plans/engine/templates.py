"""``{{ references }}`` in workflow files: Jinja2 in its sandbox, where an unknown name is an error.

``flow_checks`` knows which names exist at a step.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, cast

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.document import KeyPath

MAX_BYTES = 10_000_000
_MARK = regex(r"\{\{|\{%|\{#")
_FAILURES = (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


class InvalidTemplate(ValueError):
    """A template that can't be parsed, or whose value is unusable; the message is one line."""


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Limit powers and repetitions: a short expression must not exhaust the memory."""
        if operator == "**" and (abs(left) > 1e6 or abs(right) > 64):
            raise SecurityError("the power is too large")
        for one, times in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple) and isinstance(times, int) and len(one) * times > MAX_BYTES:  # pyright: ignore[reportUnknownArgumentType]
                raise SecurityError("the repeated text is too long")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the key of a mapping before its method, so that ``x.items`` can be a key."""
        if isinstance(obj, Mapping) and attribute in obj:
            return cast("Mapping[str, Any]", obj)[attribute]
        return super().getattr(obj, attribute)


@cache
def _environment() -> _Sandbox:
    made = _Sandbox(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    made.filters["lines"] = lambda text: [line for line in str(text).splitlines() if line.strip()]
    made.filters["from_json"] = json.loads
    return made


def built_in() -> frozenset[str]:
    """Return the names that every template knows, which can't be used to save values."""
    return frozenset({*_environment().globals, "steps"})


@frozen
class Template:
    """A parsed template. ``names``: the values it refers to; ``steps``: the ids in ``steps.<id>``."""

    names: frozenset[str]
    steps: frozenset[str]
    value: Callable[[Mapping[str, Any]], Any]


def is_template(text: str) -> bool:
    return _MARK.search(text) is not None


@lru_cache(1024)
def template(text: str) -> Template:
    """Parse ``text``; a text that is exactly one ``{{ … }}`` gives the value itself, others give text.

    Raises:
        InvalidTemplate: it can't be parsed.
    """
    if (lone := _sole_expression(text)) is not None:
        return _single(lone)
    environment = _environment()
    tree = _read(lambda: environment.parse(text))
    compiled = _read(lambda: environment.from_string(text))
    return _made(tree, lambda names: compiled.render(names))


def expression(text: str) -> Template:
    """Parse ``text``, with or without ``{{ }}`` around it, as one expression.

    Raises:
        InvalidTemplate: it can't be parsed.
    """
    text = text.strip()
    lone = _sole_expression(text) if is_template(text) else text
    if not (lone and lone.strip()):
        raise InvalidTemplate(f"expected one expression such as {{{{ files }}}}, got {text[:60]!r}")
    return _single(lone)


@lru_cache(1024)
def _single(text: str) -> Template:
    environment = _environment()
    compiled = _read(lambda: environment.compile_expression(text, undefined_to_none=False))
    tree = _read(lambda: environment.parse("{{ " + text + " }}"))
    return _made(tree, lambda names: compiled(names))


def rendered(value: Any, names: Mapping[str, Any]) -> Any:
    """Return ``value`` with every template in it replaced by its result.

    Raises:
        InvalidTemplate: a name is missing, or an expression fails.
    """
    match value:
        case str():
            return template(value).value(names) if is_template(value) else value
        case dict():
            return {key: rendered(item, names) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [rendered(item, names) for item in cast("list[Any]", value)]
        case _:
            return value


def templates_in(value: Any, at: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield every template text in ``value`` with its position."""
    match value:
        case str():
            if is_template(value):
                yield at, value
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                yield from templates_in(item, (*at, key))
        case list():
            for index, item in enumerate(cast("list[Any]", value)):
                yield from templates_in(item, (*at, index))
        case _:
            pass


def _sole_expression(text: str) -> str | None:
    """Return the content of ``text`` if it is exactly one ``{{ … }}``, else None."""
    if not (text.startswith("{{") and text.endswith("}}")):
        return None
    body = _read(lambda: _environment().parse(text)).body
    alone = len(body) == 1 and isinstance(body[0], nodes.Output) and len(body[0].nodes) == 1
    if not alone or isinstance(cast("nodes.Output", body[0]).nodes[0], nodes.TemplateData):
        return None
    return re.sub(r"^[-+]|[-+]$", "", text[2:-2])


def _made(tree: nodes.Template, value: Callable[[Mapping[str, Any]], Any]) -> Template:
    def safely(names: Mapping[str, Any]) -> Any:
        try:
            return _plain(value(names), 0)
        except _FAILURES as error:
            raise InvalidTemplate(_line(error)) from error

    return Template(frozenset(find_undeclared_variables(tree) - built_in()), frozenset(_steps(tree)), safely)


def _steps(tree: nodes.Template) -> Iterator[str]:
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        match node:
            case nodes.Getattr(node=nodes.Name(name="steps"), attr=str(name)):
                yield name
            case nodes.Getitem(node=nodes.Name(name="steps"), arg=nodes.Const(value=str(name))):
                yield name
            case _:
                pass


def _read(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except TemplateSyntaxError as error:
        line = f" (line {error.lineno} of the text)" if error.lineno > 1 else ""
        raise InvalidTemplate(f"the template can't be read: {_line(error)}{line}") from error
    except _FAILURES as error:
        raise InvalidTemplate(f"the template can't be read: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _plain(value: Any, depth: int) -> Any:
    """Return ``value`` as JSON values: iterators of filters and ranges become lists."""
    if depth > 100:
        raise ValueError("the value is nested too deeply")
    match value:
        case Undefined():
            return str(value)  # a strict one raises, naming what is missing
        case None | bool() | int():
            return value
        case str():
            return str(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"the value is {value}, which JSON can't hold")
            return value
        case Mapping():
            pairs = cast("Mapping[Any, Any]", value).items()
            return {str(key): _plain(item, depth + 1) for key, item in pairs}
        case _ if hasattr(value, "__iter__") and not callable(value):
            return [_plain(item, depth + 1) for item in value]
        case _:
            raise TypeError(f"the value is a {type(value).__name__}, which can't be passed on")
