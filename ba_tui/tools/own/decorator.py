"""The decorator by which a Python function or class says that it is a tool, and of which kind.

Light, because every tool file imports it; what they declare is read by ``declared_tools`` in the worker process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import suggestion
from ba_tui.core.values import frozen

MARK = "__ba_tool__"
NAME = regex(r"[a-z][a-z0-9_-]{0,63}")
"""What tools may be called."""


class ToolOptions(TypedDict, total=False):
    """What ``@tool(…)`` takes. All of it is optional."""

    name: str
    """By default the function's own, or the class's in lower case with underscores."""
    description: str
    """By default the docstring without its list of arguments."""
    effect: Literal["read", "write", "execute", "network"]
    """The worst it does; ``execute`` is assumed of a tool that does not say. Only ``read`` runs without asking: in the
    sandbox, where it can write nothing but temporary files and has no network. Without a sandbox it asks too."""
    target: str
    """The parameter that says what a call is about; it is shown in the call's row and matched by rules."""
    paths: Sequence[str]
    """The parameters that hold file paths; they are kept within the workspace as those of the built-in tools."""
    timeout: float | None
    """Seconds until a call is ended, 120 by default."""
    category: str
    tags: Sequence[str]
    level: Literal["brief", "standard", "full"]
    """How much of a result the model is given."""
    needs: Sequence[str]
    """Modules and programs without which it can't run; the model is told when one is missing."""
    schema: Mapping[str, Any]
    """A JSON Schema of the parameters, instead of the one that the type hints give."""
    examples: Sequence[Mapping[str, Any]]
    """Arguments of typical calls, shown to models that write their calls as text."""
    version: str
    idempotent: bool
    """Whether a call that failed may be made again without harm; by default what only reads may."""
    repeatable: bool
    """True for what is meant to be called again with the same arguments, such as a look at something that changes. It
    then counts as a repetition only while the result stays the same."""
    cacheable: bool
    """True when the same arguments, and files of ``paths`` that did not change, always give the same result."""
    subagents: bool
    """False keeps it from agents that the first agent starts."""


@frozen
class Declaration:
    """The options as given. They are checked where the tool is described, so that one place words all complaints."""

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
            raise TypeError(f"@tool stands before a function or a class, not before {type(found).__name__}.")
        setattr(found, MARK, declaration)
        return found

    return mark if declared is None else mark(declared)
