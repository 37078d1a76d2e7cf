"""Split text into index terms: stems without stop words; single characters and pairs in scripts without spaces."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@frozen
class Language:
    """``stemmer`` is the name of a Snowball algorithm."""

    stemmer: str
    stop: frozenset[str]


ENGLISH = Language(
    "english",
    _words(
        "a about after again all also am an and any are aren as at be been before being both but by can"
        " cannot could couldn d did didn do does doesn doing don done down each few for from get got had hadn"
        " has hasn have haven having he her here hers him his how i if in into is isn it its just let ll m may"
        " me might mine more most must my no nor not of off on once only or other our ours out over own re s"
        " same shall she should shouldn so some such t than that the their theirs them then there these they"
        " this those to too up us ve very was wasn we were weren what when where which who whom whose why will"
        " with won would wouldn you your yours"
    ),
)
GERMAN = Language(
    "german",
    _words(
        "aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein deine dem"
        " den denn der des dessen die dies diese diesem diesen dieser dieses doch du durch ein eine einem"
        " einen einer eines er es euch euer eure für gegen hab habe haben hat hatte hatten hier ich ihm ihn"
        " ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes kann kein keine"
        " keinen können man mein meine meinem meinen meiner mich mir mit muss müssen nach nicht noch nun nur"
        " ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so soll sollen über um und uns"
        " unser unsere unserem unseren unter vom von vor war waren warum was weil welche welchem welchen"
        " welcher welches wenn wer werden wie wieder will wir wird wo womit wohin woran worauf wollen wurde"
        " wurden wann wem wen würde zu zum zur"
    ),
)
FRENCH = Language(
    "french",
    _words(
        "ai ainsi as au aussi aux avec avoir c ce ces cet cette comme comment d dans de des du elle elles en"
        " est et était être eu il ils j je l la le les leur leurs lui m ma mais me mes moi mon n ne nos notre"
        " nous on ont ou où par pas pour pourquoi qu quand que quel quelle quelles quels qui s sa sans se ses"
        " si son sont sur t ta te tes toi ton tu un une vos votre vous y à"
    ),
)
SPANISH = Language(
    "spanish",
    _words(
        "a al algo como con cual cuando de del desde donde el ella ellas ellos en entre era es esa ese eso"
        " esta este esto fue ha han hay la las le les lo los me mi mis muy más nada ni no nos nosotros o para"
        " pero por porque que quien se ser si sin sobre son su sus también te tiene tu tus un una uno unos y"
        " ya yo él cómo cuál cuándo dónde por qué quién"
    ),
)
LANGUAGES: Sequence[Language] = (ENGLISH, GERMAN, FRENCH, SPANISH)
"""The first wins a tie."""

CHINESE_STOP = _words(
    "的 了 是 在 有 和 与 也 都 就 不 吗 呢 吧 啊 我 你 他 她 它 们 这 那 哪 什 么 谁 多"
    " 少 几 怎 样 为 个 会 能 要 到 把 被 对 什么 多少 哪个 哪里 怎么 怎样 为什 时候 我们 你们"
    " 他们 我的 你的 是什 么时 有多 是谁 哪些 是不 不是 多久"
)
"""Stop words of Chinese: characters and pairs of characters."""

_VOTES: Mapping[str, Sequence[Language]] = {
    word: tuple(language for language in LANGUAGES if word in language.stop)
    for language in LANGUAGES
    for word in language.stop
}


def language_of(words: Sequence[str]) -> Language:
    """Return the language with the most stop words among the lower-case ``words``; English without any."""
    votes = dict.fromkeys((language.stemmer for language in LANGUAGES), 0)
    for word in words:
        for language in _VOTES.get(word, ()):
            votes[language.stemmer] += 1
    return max(LANGUAGES, key=lambda language: votes[language.stemmer])


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


class IndexTerm(NamedTuple):
    """``stem`` is the term in the index, ``word`` the lower-case word in the text."""

    stem: str
    word: str


def terms(text: str) -> list[IndexTerm]:
    """Return the terms of the first 20,000 characters of ``text``, in order, with repetitions."""
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text[:READ]))
    language = language_of([token.lower() for token in tokens])
    return list(_read(tokens, language))


def stems(text: str) -> list[str]:
    """Return the stems of ``terms(text)``."""
    return [term.stem for term in terms(text)]


def is_unspaced(term: str) -> bool:
    """True for a term of a script without spaces."""
    return _FIRST_UNSPACED.match(term) is not None


def _read(tokens: Iterable[str], language: Language) -> Iterator[IndexTerm]:
    for token in tokens:
        if is_unspaced(token):
            yield from _characters(token)
            continue
        for part in _parts(_APOSTROPHE.split(token.replace(",", ""), 1)[0]):
            word = part.lower()[:_LONGEST]
            if word and word not in language.stop:
                stem = _stemmer(language.stemmer)(word) if not word.isdigit() else word
                yield IndexTerm(_MARK.sub("", unicodedata.normalize("NFD", stem)), word)


def _parts(token: str) -> list[str]:
    """Return ``getUserName`` with its three words; other tokens alone."""
    if token.isascii() and not (token.islower() or token.isupper() or token.istitle() or token.isdigit()):
        humps = _HUMPS.findall(token)
        return [token, *humps] if len(humps) > 1 else [token]
    return [token]


def _characters(run: str) -> Iterator[IndexTerm]:
    for each in (*run, *(run[at : at + 2] for at in range(len(run) - 1))):
        if each not in CHINESE_STOP:
            yield IndexTerm(each, each)


@cache
def _stemmer(algorithm: str) -> Callable[[str], str]:
    """Return the function that returns the stem of a word."""
    import Stemmer  # noqa: PLC0415 - a compiled library that only memory needs

    library: Any = Stemmer
    return library.Stemmer(algorithm, 10_000).stemWord


_WORD = regex(r"\w+")
_NUMBER = regex(r"\d+(?:[.,:/-]\d+)*")
_NOT = regex(
    r"\b(?:not|no|never|none|without|cannot|\w+n['’]t|nicht|kein\w*|nie|niemals|ohne|ne|pas|jamais|sin|nunca)\b|[不没無无别未]",
    re.IGNORECASE,
)
_ORDERED = regex(
    r"\b(?:than|over|before|after|instead|from|to|rather|versus|vs|als|statt|lieber|vor|nach|von|über)\b|比|而不|之前|之后",
    re.IGNORECASE,
)
"""Words around which the order of two things matters."""
_ALIKE = 0.8
_FEW = 3


class Sameness(Enum):
    """The result of comparing two texts."""

    EQUAL = "equal"
    """The same words in the same order; case, spaces and punctuation may differ."""
    REWORDED = "reworded"
    NUMBERS = "numbers"
    """The same except for numbers."""
    DIFFERENT = "different"


def fingerprint(text: str) -> str:
    """A hash that two texts share when they are ``EQUAL``."""
    words = " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
    return hashlib.blake2b((words or text).encode("utf-8", "replace"), digest_size=12).hexdigest()


def compare(one: str, other: str) -> Sameness:
    """Return how ``one`` and ``other`` compare; ``DIFFERENT`` when in doubt."""
    if fingerprint(one) == fingerprint(other):
        return Sameness.EQUAL
    if bool(_NOT.search(one)) != bool(_NOT.search(other)):
        return Sameness.DIFFERENT
    ours, theirs = _plain(one), _plain(other)
    left, right = set(ours), set(theirs)
    if min(len(left), len(right)) < _FEW or len(left & right) < _ALIKE * len(left | right):
        return Sameness.DIFFERENT
    if (_ORDERED.search(one) or _ORDERED.search(other)) and ours != theirs:
        return Sameness.DIFFERENT
    if sorted(_NUMBER.findall(one)) != sorted(_NUMBER.findall(other)):
        return Sameness.NUMBERS
    # A single word that differs may be the whole point: "the deadline is Monday", "… is Friday".
    return Sameness.REWORDED if left == right else Sameness.DIFFERENT


def _plain(text: str) -> list[str]:
    return stems(_NUMBER.sub(" ", text))
