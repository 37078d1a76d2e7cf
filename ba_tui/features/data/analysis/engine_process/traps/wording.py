"""What names of columns and outputs say: their words without endings."""

from __future__ import annotations

from ba_tui.core.text.patterns import regex

_LOWER, _UPPER = "a-zß-öø-ÿ", "A-ZÀ-ÖØ-Þ"
_WORD = regex(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|\d+|[^\W\d_]+")


def words(name: str) -> list[str]:
    """The words of a name such as ``mean_receipt`` or ``lifeExp``, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def known(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())


def stems(name: str) -> frozenset[str]:
    """The words of a name without the endings of the plural and of participles."""
    return frozenset(stem(word) for word in words(name))


def stem(word: str) -> str:
    """A word without its usual endings."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2 and not word.endswith("ss"):
            return word[: -len(ending)] + instead
    return word


def says(name: str, parts: frozenset[str]) -> bool:
    """Whether a name holds one of ``parts`` as a word, or in a compound as German and Chinese build them."""
    own = words(name)
    return bool(parts & set(own)) or any(
        part in word for word in own for part in parts if len(part) > 5 or not part.isascii()
    )
