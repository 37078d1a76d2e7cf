"""Declares tools: the decorator ``tool``, and what the model reads of a tool, derived from its type hints and
docstring.

Tool files import the decorator; everything else runs in the worker process, which has loaded the code.
"""

from __future__ import annotations

import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Unpack, cast, get_args, get_origin, overload

from ba_tui.core.effects import Effect
from ba_tui.core.results import OutputLevel
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import suggestion
from ba_tui.core.values import frozen, late

MARK = "__ba_tool__"
NAME = regex(r"[a-z][a-z0-9_-]{0,63}")
"""Valid names of tools."""
# Needed to describe tools, not to call them.
schema_complaint = late("ba_tui.tools.guards.validate:schema_complaint")


def is_tool_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None


class ToolOptions(TypedDict, total=False):
    """The options of ``@tool(…)``, all optional."""

    name: str
    """By default the name of the function, or of the class in lower case with underscores."""
    description: str
    """By default the docstring without its list of arguments."""
    effect: Literal["read", "write", "execute", "network"]
    """The strongest effect of the tool; the default is ``execute``. Only ``read`` runs without a question: in the
    sandbox, without network, and able to write only temporary files. Without a sandbox it asks, too."""
    target: str
    """The parameter that names the object of a call; the call's row shows it, and rules match it."""
    paths: Sequence[str]
    """The parameters with file paths, which must be in the workspace, as for built-in tools."""
    timeout: float | None
    """Time limit of a call in seconds, 120 by default."""
    category: str
    tags: Sequence[str]
    level: Literal["brief", "standard", "full"]
    """The amount of a result that the model reads."""
    needs: Sequence[str]
    """Modules and programs that the tool needs; the model reads which one is missing."""
    schema: Mapping[str, Any]
    """A JSON Schema of the parameters, instead of the one derived from type hints."""
    examples: Sequence[Mapping[str, Any]]
    """Arguments of typical calls, for models that write calls as text."""
    version: str
    idempotent: bool
    """Whether a failed call may be repeated without harm; by default true for reading tools."""
    repeatable: bool
    """True for a tool that is called again with the same arguments, such as a status query. A call then counts as
    repeated only if its result is the same."""
    cacheable: bool
    """True if the same arguments and unchanged files of ``paths`` always give the same result."""
    subagents: bool
    """False hides the tool from sub-agents."""


@frozen
class Declaration:
    """The options as given. They are checked when the tool is described, which words all complaints."""

    name: str = ""
    description: str = ""
    effect: str = "execute"
    target: str = ""
    paths: Sequence[str] = ()
    timeout: float | None = 120
    category: str = "other"
    tags: Sequence[str] = ()
    level: str = "standard"
    needs: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None
    examples: Sequence[Mapping[str, Any]] = ()
    version: str = "1"
    idempotent: bool | None = None
    repeatable: bool = False
    cacheable: bool = False
    subagents: bool = True


F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(declared: F, /) -> F: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
def tool(declared: Any = None, /, **options: Any) -> Any:
    """Make a tool of a typed function with a docstring, or of a class with a method ``run``.

    The function stays what it is and can be called and tested as before::

        @tool(effect="network", target="city")
        def weather(city: str, days: int = 1) -> str:
            \"\"\"Forecast for a city. Use it for questions about the coming days.

            Args:
                city: Its name, with the country where it is not clear.
                days: How many days, 1 to 7.
            \"\"\"
    """
    known = [field.name for field in fields(Declaration)]
    for option in options:
        if option not in known:
            raise TypeError(f"@tool has no option {option!r}; {suggestion(option, known)}")
    declaration = Declaration(**options)

    def mark(found: Any) -> Any:
        if not callable(found):
            raise TypeError(f"@tool decorates a function or a class, not {type(found).__name__}.")
        setattr(found, MARK, declaration)
        return found

    return mark if declared is None else mark(declared)


MAX_DESCRIPTION = 8_000


class ToolFault(Exception):
    """An error in a declared tool or in its result. ``line`` of its file; 0 if unknown."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


class DeclaredTool:
    """A declared tool: ``record`` describes it, ``bind`` converts JSON arguments.

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
        """Return the description for the client. Calls do not need it, and checking the schema takes as long as
        starting a worker.

        Raises:
            ToolFault: a part of it can't be told.
        """
        try:
            return self._record()
        except ToolFault as error:
            raise ToolFault(f"{self.found.__name__}: {error}", self.line) from error

    def bind(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Convert ``args`` to keyword arguments of the function's types.

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


class _DocWords:
    """A parsed docstring: the text on the tool, and that on each parameter."""

    def __init__(self, text: str) -> None:
        import docstring_parser  # noqa: PLC0415 - needed to describe, not to call

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
    """Yield the declared tools of a module in the order of lines, or those in ``__all__``.

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


def _docstring(found: Any, function: Any) -> _DocWords:
    words = _DocWords(found.__doc__ or "")
    if function is not found and function.__doc__:
        of_run = _DocWords(function.__doc__)
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


def _model(parameters: Sequence[inspect.Parameter], words: _DocWords) -> Any:
    """Return a pydantic model of the parameters. Its fields have invented names that can't collide with pydantic's."""
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
    """Return the text in ``Annotated[int, "text"]``."""
    if get_origin(annotation) is not Annotated:
        return ""
    return next((" ".join(each.split()) for each in get_args(annotation)[1:] if isinstance(each, str)), "")


def _generated(model: Any) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError  # noqa: PLC0415 - see _model

    with warnings.catch_warnings():
        # A default that is not JSON is left out of the schema, but the function still has it.
        warnings.simplefilter("ignore")
        try:
            return model.model_json_schema(by_alias=True)
        except (PydanticUserError, ValueError, TypeError) as error:
            raise ToolFault(f"a type hint can't be described: {str(error).splitlines()[0]}") from error


def _without_titles(schema: Any, *, names: bool = False) -> Any:
    """Return ``schema`` without generated titles. ``names``: its keys are names that the author chose."""
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
