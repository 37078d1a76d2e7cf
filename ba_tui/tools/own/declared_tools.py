"""What the model reads of a declared tool, derived from its type hints and docstring; and how it is called with JSON.

Runs in the worker process: pydantic does the deriving, and the declared code is at hand only there.
"""

from __future__ import annotations

import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, cast, get_args, get_origin

from ba_tui.core.effects import Effect
from ba_tui.core.results import OutputLevel
from ba_tui.core.text.wording import suggestion
from ba_tui.tools.own.decorator import MARK, NAME, Declaration

MAX_DESCRIPTION = 8_000


class ToolFault(Exception):
    """What is wrong with a declared tool or what it returned, in words. ``line`` of its file, 0 when unknown."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


class DeclaredTool:
    """One declared tool: ``record`` is what is told about it, ``bind`` makes arguments of JSON.

    Raises:
        ToolFault: it can't be a tool.
    """

    def __init__(self, found: Any) -> None:
        self.found = found
        self.declaration: Declaration = getattr(found, MARK)
        self.line = line_of(found)
        self.stateful = inspect.isclass(found)
        function = found.run if self.stateful and callable(getattr(found, "run", None)) else found
        try:
            if self.stateful and function is found:
                raise ToolFault("a class that is a tool needs a method named run")
            self._parameters = _parameters(function, method=self.stateful)
            self._words = _docstring(found, function)
            self._model = None if self.declaration.schema is not None else _model(self._parameters, self._words)
            self.name = _name(self.declaration.name or _snake(found.__name__))
        except ToolFault as error:
            raise ToolFault(f"{found.__name__}: {error}", self.line) from error

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the client is told. Calls need none of it, and to check the schema takes as long as a worker's start.

        Raises:
            ToolFault: a part of it can't be told.
        """
        try:
            return self._record()
        except ToolFault as error:
            raise ToolFault(f"{self.found.__name__}: {error}", self.line) from error

    def bind(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the types that the function asks for.

        Raises:
            pydantic.ValidationError: they do not fit.
        """
        if self._model is None:
            return dict(args)
        value = self._model.model_validate(dict(args))
        fields = self._model.model_fields
        return {fields[name].alias: getattr(value, name) for name in fields if name in value.model_fields_set}

    def _record(self) -> dict[str, Any]:
        declared = self.declaration
        description = declared.description or self._words.description
        if not description.strip():
            raise ToolFault("it has no docstring; the first lines tell the model when to use it")
        if len(description) > MAX_DESCRIPTION:
            raise ToolFault(f"the description is longer than {MAX_DESCRIPTION} characters")
        names = [parameter.name for parameter in self._parameters]
        paths = _texts("paths", declared.paths)
        for parameter in (*paths, *([declared.target] if declared.target else [])):
            if parameter not in names:
                raise ToolFault(f"there is no parameter {parameter!r}; {suggestion(parameter, names, 'it has')}")
        return {
            "name": self.name,
            "object": self.found.__name__,
            "stateful": self.stateful,
            "line": self.line,
            "description": description.strip(),
            "schema": self._schema(),
            "effect": _choice("effect", declared.effect, [effect.value for effect in Effect]),
            "target": declared.target,
            "paths": paths,
            "timeout": _timeout(declared.timeout),
            "category": _text("category", declared.category),
            "tags": _texts("tags", declared.tags),
            "level": _choice("level", declared.level, get_args(OutputLevel)),
            "needs": _texts("needs", declared.needs),
            "examples": _examples(declared.examples),
            "version": _text("version", declared.version),
            "idempotent": declared.idempotent if declared.idempotent is None else bool(declared.idempotent),
            "repeatable": bool(declared.repeatable),
            "cacheable": bool(declared.cacheable),
            "subagents": bool(declared.subagents),
        }

    def _schema(self) -> dict[str, Any]:
        from ba_tui.tools.schemas import schema_complaint  # noqa: PLC0415 - only to describe, never to call

        if self._model is None:
            given: Any = self.declaration.schema
        else:
            given = _without_titles(_generated(self._model))
        schema = cast("dict[str, Any]", given)
        if not isinstance(given, dict) or schema.get("type") != "object":
            raise ToolFault('the schema must be a mapping with type: "object"')
        if complaint := schema_complaint(schema):
            at, text = complaint
            raise ToolFault(f"the schema at {'.'.join(map(str, at)) or 'its top'} {text}")
        return schema


class _Words:
    """A docstring, taken apart: the words on the tool and those on each parameter."""

    def __init__(self, text: str) -> None:
        import docstring_parser  # noqa: PLC0415 - only to describe, never to call

        try:
            parsed = docstring_parser.parse(inspect.cleandoc(text))
        except docstring_parser.ParseError:
            self.description, self.parameters = inspect.cleandoc(text), {}
            return
        parts = [parsed.short_description, parsed.long_description]
        if parsed.returns and parsed.returns.description:
            parts.append(f"Returns: {parsed.returns.description}")
        self.description = "\n".join(part.strip() for part in parts if part)
        self.parameters = {each.arg_name: " ".join((each.description or "").split()) for each in parsed.params}


def declared_in(module: Any) -> Iterator[Any]:
    """The declared tools of a module, in the order of their lines. ``__all__`` wins over what stands in it.

    Raises:
        ToolFault: ``__all__`` names something that is not there.
    """
    listed = getattr(module, "__all__", None)
    if listed is not None:
        for name in listed:
            if not hasattr(module, name):
                raise ToolFault(f"__all__ names {name!r}, which the file does not define")
        candidates: list[Any] = [getattr(module, name) for name in listed]
    else:
        candidates = [
            value
            for _, value in inspect.getmembers_static(module)
            if getattr(value, "__module__", "") == module.__name__
        ]
    unique = {id(value): value for value in candidates if isinstance(getattr(value, MARK, None), Declaration)}
    yield from sorted(unique.values(), key=line_of) if listed is None else unique.values()


def line_of(found: Any) -> int:
    try:
        return inspect.getsourcelines(found)[1] if inspect.isclass(found) else found.__code__.co_firstlineno
    except (OSError, TypeError, AttributeError):
        return 0


def _docstring(found: Any, function: Any) -> _Words:
    words = _Words(found.__doc__ or "")
    if function is not found and function.__doc__:
        of_run = _Words(function.__doc__)
        words.description = words.description or of_run.description
        words.parameters |= of_run.parameters
    return words


def _parameters(function: Callable[..., Any], *, method: bool) -> list[inspect.Parameter]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError, SyntaxError) as error:
        raise ToolFault(f"its type hints can't be read: {error}") from error
    found: list[inspect.Parameter] = []
    for parameter in parameters[1 if method else 0 :]:
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise ToolFault(f"the parameters of {str(parameter).partition(':')[0]} can't be described; name each")
        if parameter.name not in hints:
            raise ToolFault(f"the parameter {parameter.name!r} has no type hint")
        found.append(parameter.replace(annotation=hints[parameter.name]))
    return found


def _model(parameters: Sequence[inspect.Parameter], words: _Words) -> Any:
    """A pydantic model of the parameters. Fields have names of their own, so that none meets one of pydantic's."""
    from pydantic import ConfigDict, Field, create_model  # noqa: PLC0415 - heavy; ``declared_tools`` is imported for its names too
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    fields: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        doc = _said(parameter.annotation) or words.parameters.get(parameter.name)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"p{index}"] = (parameter.annotation, Field(default, alias=parameter.name, description=doc or None))
    try:
        return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise ToolFault(f"a type hint can't be described: {str(error).splitlines()[0]}") from error


def _said(annotation: Any) -> str:
    """The words in ``Annotated[int, "words"]``."""
    if get_origin(annotation) is not Annotated:
        return ""
    return next((" ".join(each.split()) for each in get_args(annotation)[1:] if isinstance(each, str)), "")


def _generated(model: Any) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError  # noqa: PLC0415 - see _model

    with warnings.catch_warnings():
        # A default that is no JSON is left out of the schema; the function has it all the same.
        warnings.simplefilter("ignore")
        try:
            return model.model_json_schema(by_alias=True)
        except (PydanticUserError, ValueError, TypeError) as error:
            raise ToolFault(f"a type hint can't be described: {str(error).splitlines()[0]}") from error


def _without_titles(schema: Any, *, names: bool = False) -> Any:
    """``schema`` without the titles that pydantic makes up. ``names``: its keys are names that the author chose."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "title" and isinstance(value, str) and not names:
            continue
        verbatim = key in {"default", "enum", "const", "examples"} and not names
        found[key] = value if verbatim else _without_titles(value, names=key in {"properties", "$defs"} and not names)
    return found


def _name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ToolFault(f"the name {name!r} needs lower-case letters, digits, _ and - only, at most 64")
    return name


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _choice(option: str, value: Any, known: Sequence[str]) -> str:
    if value not in known:
        raise ToolFault(f"{option}={value!r}: expected one of {', '.join(known)}")
    return str(value)


def _text(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ToolFault(f"{option}={value!r}: expected a text")
    return value


def _texts(option: str, value: Any) -> list[str]:
    if isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise ToolFault(f"{option}={value!r}: expected a list of texts")
    return list(value)


def _examples(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, dict) for item in cast("list[Any]", value)):
        raise ToolFault(f"examples={value!r}: expected a list of arguments, each a mapping")
    return list(cast("list[dict[str, Any]]", value))


def _timeout(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise ToolFault(f"timeout={value!r}: expected seconds, more than 0 and at most 86400, or None")
    return float(value)
