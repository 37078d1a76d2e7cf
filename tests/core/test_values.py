"""Values: as the standard library's frozen dataclasses are, in all that anybody relies on."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ba_tui.core.values import frozen


@frozen
class Place:
    """Where."""

    line: int
    names: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list[str])
    key: str = field(default="", repr=False)
    at: float = field(default=1.5, kw_only=True, compare=False)


@frozen
class Named(Place):
    name: str = "x"
    size: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.name))


@frozen
class Nothing:
    pass


@frozen
class One:
    only: Any


@dataclass(frozen=True, slots=True)
class Standard:
    line: int
    names: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list[str])
    key: str = field(default="", repr=False)
    at: float = field(default=1.5, kw_only=True, compare=False)


def test_is_made_as_the_standard_library_makes_it() -> None:
    for ours, theirs in (
        (Place(3), Standard(3)),
        (Place(3, ("a",), key="k", at=2), Standard(3, ("a",), key="k", at=2)),
        (Place(line=1, told=["x"]), Standard(line=1, told=["x"])),
    ):
        assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
        assert repr(ours) == repr(theirs).replace("Standard", "Place")
    assert Place.__match_args__ == Standard.__match_args__
    assert Place(1).told is not Place(1).told


@pytest.mark.parametrize(("args", "named"), [((), {}), ((1, (), [], "", 2.0), {}), ((1,), {"other": 2})])
def test_wrong_arguments_are_refused(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Place(*args, **named)


def test_never_changes() -> None:
    place: Any = Place(1)
    with pytest.raises(FrozenInstanceError):
        place.line = 2
    with pytest.raises(FrozenInstanceError):
        place.other = 2
    with pytest.raises(FrozenInstanceError):
        del place.line
    assert not hasattr(place, "__dict__")
    assert replace(place, line=2) == Place(2)
    assert place == Place(1)


def test_is_compared_by_what_it_holds() -> None:
    assert Place(1, at=2) == Place(1, at=3)
    assert Place(1) != Place(2)
    assert Place(1) != Standard(1)
    assert Named(1) != Place(1)
    assert Nothing() == Nothing()
    nan = float("nan")
    assert One(nan) == One(nan)
    assert len({One(1), One(1), One(2), Nothing(), Nothing()}) == 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(1))


def test_a_value_inherits_fields_and_is_finished_after_it_was_made() -> None:
    named = Named(1, ("a",), name="four", at=9.0)
    assert (named.line, named.names, named.name, named.size, named.at) == (1, ("a",), "four", 4, 9.0)
    assert [each.name for each in fields(Named)] == ["line", "names", "told", "key", "at", "name", "size"]
    assert replace(named, name="no").size == 2


def test_copies_and_pickles_are_the_same_value() -> None:
    named = Named(1, ("a",), ["b"], name="c")
    for other in (copy.copy(named), copy.deepcopy(named), pickle.loads(pickle.dumps(named))):
        assert other == named
        assert other.size == named.size
    assert copy.deepcopy(named).told is not named.told


def test_pydantic_reads_it() -> None:
    read = TypeAdapter(Named).validate_python({"line": "3", "names": ["a"], "name": "abc"})
    assert read == Named(3, ("a",), name="abc")
    assert read.size == 3
    with pytest.raises(ValidationError):
        TypeAdapter(Place).validate_python({"line": "x"})


def test_what_a_class_says_itself_stays() -> None:
    @frozen
    class Own:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert Own("A") == Own("a")
    assert len({Own("A"), Own("a")}) == 1
    assert repr(Own("A")) == "<A>"
