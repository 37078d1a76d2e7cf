"""Split text into index terms: stems without stop words; single characters and pairs in scripts without spaces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

from ba_tui.core.text.patterns import regex
from ba_tui.features.memory.engine.languages import CHINESE_STOP, Language, language_of

READ = 20_000
"""Characters of a text that become terms."""
_LONGEST = 40
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, kana, Chinese, Korean (whose endings hang on the words)."""
_TOKEN = regex(rf"[{_UNSPACED}]+|\d{{1,3}}(?:,\d{{3}})+(?!\d)|[^\W_{_UNSPACED}]+(?:['’][^\W\d_]+)?")
"""A run of unspaced characters, a number with thousands separators, or a word with what follows its apostrophe."""
_FIRST_UNSPACED = regex(rf"[{_UNSPACED}]")
_APOSTROPHE = regex("['’]")
_HUMPS = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MARK = regex(r"[\u0300-\u036f]")


class Term(NamedTuple):
    """``stem`` is the term in the index, ``word`` the lower-case word in the text."""

    stem: str
    word: str


def terms(text: str) -> list[Term]:
    """The terms of the first 20,000 characters of ``text``, in order, with repetitions."""
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text[:READ]))
    language = language_of([token.lower() for token in tokens])
    return list(_read(tokens, language))


def stems(text: str) -> list[str]:
    """The stems of ``terms(text)``."""
    return [term.stem for term in terms(text)]


def is_unspaced(term: str) -> bool:
    """True for a term of a script without spaces."""
    return _FIRST_UNSPACED.match(term) is not None


def _read(tokens: Iterable[str], language: Language) -> Iterator[Term]:
    for token in tokens:
        if is_unspaced(token):
            yield from _characters(token)
            continue
        for part in _parts(_APOSTROPHE.split(token.replace(",", ""), 1)[0]):
            word = part.lower()[:_LONGEST]
            if word and word not in language.stop:
                stem = _stemmer(language.stemmer).stemWord(word) if not word.isdigit() else word
                yield Term(_MARK.sub("", unicodedata.normalize("NFD", stem)), word)


def _parts(token: str) -> list[str]:
    """``getUserName`` as itself and its three words; other tokens as themselves."""
    if token.isascii() and not (token.islower() or token.isupper() or token.istitle() or token.isdigit()):
        humps = _HUMPS.findall(token)
        return [token, *humps] if len(humps) > 1 else [token]
    return [token]


def _characters(run: str) -> Iterator[Term]:
    for each in (*run, *(run[at : at + 2] for at in range(len(run) - 1))):
        if each not in CHINESE_STOP:
            yield Term(each, each)


class _Stems(Protocol):
    def stemWord(self, word: str, /) -> str: ...


@cache
def _stemmer(algorithm: str) -> _Stems:
    import Stemmer  # noqa: PLC0415 - a compiled library that only memory needs

    library: Any = Stemmer
    return library.Stemmer(algorithm, 10_000)
