"""Finds known secret values in text even if a command disguised them.

Recognised: a piece of ten characters, reversed, spaced, one character per line, lookalike letters, hexadecimal, octal
or decimal codes, base64, ROT13. Letters and digits are compared and everything between them is skipped. ``KnownSearch``
looks up six characters at every fifth place in an index of all values, so the time does not depend on the number of
values.
"""

from __future__ import annotations

import base64
import os
import string
import threading
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import lru_cache
from itertools import compress, islice, pairwise
from pathlib import Path
from urllib.parse import quote

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import LOOKALIKES
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.masking import KnownSecrets
from ba_tui.permissions.secrets.scanner import Secret, find, without

GRAM, STRIDE = 6, 5
BLOCK = 16
"""Letters and digits compared first next to a hit; doubled after each match."""
PIECE = GRAM + STRIDE - 1
"""Consecutive letters and digits of a value that are found at any offset."""
SHORTEST = 8
"""Minimum letters and digits of a value; the shortest are matched only as a whole."""
WORDS = 12
"""The minimum for a value of letters only."""
MOST_SHORT = 100
MANY, MOST = 100_000, 400_000
"""Entries of the index beyond which encodings are matched only as a whole, and beyond which no value is added."""
COMMON = 8
"""The first encodings, which are hexadecimal or base64."""
NEAR = 400
"""Characters around a found piece in which shorter pieces count: the rest of a broken line."""
SHORT = 6
LONGEST_ENCODED = 4_000
NUMBERED = 8
"""Short numbered lines from which a text counts as one character per line."""
_ALNUM = string.ascii_letters + string.digits
_ALNUM_BYTES = _ALNUM.encode()
_OTHERS = bytes(code for code in range(256) if code not in _ALNUM_BYTES)
_LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())
_IS_ALNUM = bytes(code in _ALNUM_BYTES for code in range(256))
_SAME = {**LOOKALIKES, **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}}
"""Lookalike letters and wide letters."""
_ROT13 = bytes.maketrans(
    string.ascii_lowercase.encode(), (string.ascii_lowercase[13:] + string.ascii_lowercase[:13]).encode()
)
_CLASSES = str.maketrans({
    **dict.fromkeys(string.ascii_lowercase, "a"),
    **dict.fromkeys(string.ascii_uppercase, "A"),
    **dict.fromkeys(string.digits, "0"),
})  # fmt: skip
_LONG_RUN = regex(r"a{6}|A{6}|0{6}")
_UNSPOKEN = regex(r"[bcdfghjklmnpqrstvwxz]{5}", 2)
_NUMBER = regex(
    r"(?m)^[ \t|>]*[0-9]{1,7}(?:[ \t|:.,;)\]→│-]+)(?=[^\n]{0,12}$)|\\[nrt]|(?<=[({ \[])[0-9]{1,5}(?=[,:] ?['\"])"
)
"""The text between the characters of a value written one per line."""
_CHOSEN = regex(
    r"(?:(?=[A-Z]?[a-z]*[aeiouy])[A-Z]?[a-z]{3,}+|(?=[A-Z]*[AEIOU])[A-Z]{3,8}+(?![A-Z])|[0-9]{1,4}+(?![0-9])"
    r"|[^A-Za-z0-9]{1,2}+(?![^A-Za-z0-9]))++"
)
"""A password made of words. Other text contains these words too, so spelling and borders matter. It never backtracks:
values may come from any file."""
LONGEST_CHOSEN = 64
SPREAD = 1.5
"""Characters per letter from which a value counts as spaced out; ordinary text never reaches it."""
_DATE = regex(r"(?:19|20)\d\d[-/.]?\d\d[-/.]?\d\d(?:[T _-].{0,24})?")


@frozen
class _Form:
    """One way to write a value: its letters and digits in lower case.

    ``least``: consecutive characters that count as a piece. ``plain``: the same with capitals for the value itself;
    empty for an encoding. ``spelling``: the form between other words; empty if any form counts.
    """

    text: bytes = field(repr=False)
    least: int
    plain: str = field(repr=False)
    value: str = field(repr=False)
    kind: str
    spelling: str = field(default="", repr=False)


class KnownSearch:
    """Searches texts for the values of ``known``. Thread-safe; new values are added to the index at the next search."""

    def __init__(self, known: KnownSecrets) -> None:
        self.known = known
        self._lock = threading.Lock()
        self._version = 0
        self._indexed: set[str] = set()
        self._forms: list[_Form] = []
        self._grams: dict[bytes, int] = {}
        """Index of six characters: the number of a form and the offset in it, packed into one integer."""
        self._short: list[_Form] = []
        self._literal: dict[str, str] = {}

    @property
    def settled(self) -> bool:
        """Whether the index contains all values; otherwise the next search takes longer."""
        return self._version == self.known.version

    def secrets(self, text: str) -> tuple[Secret, ...]:
        """Return all secrets in ``text``, in order, by pattern and by value; those found by pattern become known
        values."""
        seen = find(text)
        for secret in seen:
            self.known.add([text[secret.start : secret.end]], secret.kind)
        by_value = self.find(text)
        return merge_overlaps((*seen, *by_value)) if by_value else seen

    def masked(self, text: str) -> str:
        """Return ``text`` with ``[secret: KIND]`` in place of every secret."""
        return without(text, self.secrets(text))

    def find(self, text: str) -> tuple[Secret, ...]:
        """Return the known values in ``text`` and pieces of them, in order, without overlaps."""
        if not self.settled:
            self.prepare()
        if not self._indexed or len(text) < SHORTEST:
            return ()
        found = [*self._literally(text)]
        for view in _views(text):
            found += self._in_view(view, text)
        return merge_overlaps(found)

    def prepare(self) -> None:
        """Add new values to the index. After adding many values, call it off the event loop."""
        with self._lock:
            version, values = self.known.version, self.known.values()
            for value, kind in values.items():
                if value not in self._indexed:
                    self._indexed.add(value)
                    self._add(value, kind)
            self._version = version

    def _add(self, value: str, kind: str) -> None:
        plain = "".join(filter(_ALNUM.__contains__, value))
        if len(plain) < SHORTEST:
            odd = sum(not letter.isspace() and letter not in _ALNUM for letter in value)
            if len(value) >= SHORTEST and odd > 1 and len(self._literal) < MOST_SHORT:
                self._literal[value] = kind
            return
        if not _telling(value, plain):
            return
        spelling = _trimmed(value) if _chosen(value) else ""
        form = _Form(plain.lower().encode(), PIECE, plain, value, kind, spelling)
        if len(plain) < PIECE:
            if len(self._short) < MOST_SHORT:
                self._short.append(form)
            return
        self._index(form)
        address = quote(value, safe="")
        quoted = "".join(filter(_ALNUM.__contains__, address))
        if quoted != plain:
            spelling = _trimmed(address) if spelling else ""
            self._index(_Form(quoted.lower().encode(), PIECE, quoted, value, kind, spelling))
        many = len(self._grams) > MANY
        for text, least in islice(_encodings(value), COMMON if many else None) if len(value) <= LONGEST_ENCODED else ():
            whole = len(text) - STRIDE if many else 0
            self._index(_Form(text, max(least, whole), "", value, kind))

    def _index(self, form: _Form) -> None:
        if len(self._grams) > MOST or len(form.text) < form.least:
            return
        number = len(self._forms)
        self._forms.append(form)
        # A long piece covers several lookup places; one of them is enough.
        every = max(1, (form.least - GRAM + 1) // STRIDE)
        for at in range(len(form.text) - GRAM + 1):
            if (at // STRIDE) % every == 0:
                self._grams.setdefault(form.text[at : at + GRAM], number << 32 | at)

    def _literally(self, text: str) -> Iterator[Secret]:
        for value, kind in tuple(self._literal.items()):
            at = text.find(value)
            while at >= 0:
                yield Secret(at, at + len(value), kind, value)
                at = text.find(value, at + len(value))

    def _in_view(self, view: _View, original: str) -> Iterator[Secret]:
        text, grams, end = view.text, self._grams, 0
        hits = [at for at in range(0, len(text) - GRAM + 1, STRIDE) if text[at : at + GRAM] in grams]
        for hit in hits:
            if hit + GRAM <= end:
                continue
            packed = grams[text[hit : hit + GRAM]]
            form, place = self._forms[packed >> 32], packed & 0xFFFFFFFF
            first, last = _run(text, hit, form.text, place)
            if form.spelling:
                if last - first == len(form.text) and view.spells(first, last, form, original):
                    yield view.secret(first, last, form)
                    end = last
            elif _counts(form, place - (hit - first), last - first):
                yield view.secret(first, last, form)
                yield from _remainders(view, form, (first, last))
                end = last
        for form in tuple(self._short):
            at = text.find(form.text)
            while at >= 0:
                after = at + len(form.text)
                if not form.spelling or view.spells(at, after, form, original):
                    yield view.secret(at, after, form)
                at = text.find(form.text, after)


@frozen
class _View:
    """The letters and digits of a text in lower case, in one order and alphabet; ``offsets`` of each."""

    text: bytes
    offsets: _Offsets
    backwards: bool = False
    turned: bool = False

    def spells(self, first: int, last: int, form: _Form, original: str) -> bool:
        """Return whether a value made of words occurs there: as a separate word in its own spelling, or disguised."""
        if self.backwards or self.turned:
            return True
        begin, end = self.offsets[first], self.offsets[last - 1] + 1
        if end - begin >= SPREAD * (last - first) + 2:
            return True
        around = original[begin - 1 : begin] if begin else ""
        bordered = not any(letter.isalnum() or letter == "_" for letter in around + original[end : end + 1])
        return bordered and original[begin:end].lower() == form.spelling.lower()

    def secret(self, first: int, last: int, form: _Form) -> Secret:
        if self.backwards:
            first, last = len(self.text) - last, len(self.text) - first
        return Secret(self.offsets[first], self.offsets[last - 1] + 1, form.kind, form.value)


class _Offsets:
    """Offsets of letters and digits of a text, computed on first use."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._places: array[int] | None = None

    def __getitem__(self, at: int) -> int:
        if self._places is None:
            self._places = array("L", compress(range(len(self._raw)), self._raw.translate(_IS_ALNUM)))
        return self._places[at]


def merge_overlaps(found: Iterable[Secret]) -> tuple[Secret, ...]:
    """Return ``found`` in order, with overlapping secrets merged under the kind of the longest."""
    apart: list[Secret] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if apart and secret.start < apart[-1].end:
            last = apart[-1]
            longest = max(last, secret, key=lambda each: each.end - each.start)
            apart[-1] = Secret(last.start, max(last.end, secret.end), longest.kind, longest.value)
        else:
            apart.append(secret)
    return tuple(apart)


def search_for(root: Path) -> KnownSearch:
    """Return the search of the project at ``root``, which its sessions and their requests share."""
    return _search(os.path.realpath(root))


@lru_cache(maxsize=8)
def _search(root: str) -> KnownSearch:
    del root
    return KnownSearch(KnownSecrets())


def _views(text: str) -> Iterator[_View]:
    text = text if text.isascii() else text.translate(_SAME)
    raw = text.encode("ascii", "replace")
    yield from _both_ways(raw, turned=True)
    if len(_NUMBER.findall(text[:20_000])) >= NUMBERED:
        blank = _NUMBER.sub(lambda found: "." * len(found[0]), text).encode("ascii", "replace")
        yield from _both_ways(blank, turned=False)


def _both_ways(raw: bytes, *, turned: bool) -> Iterator[_View]:
    plain, offsets = raw.translate(_LOWER, _OTHERS), _Offsets(raw)
    yield _View(plain, offsets)
    yield _View(plain[::-1], offsets, backwards=True)
    if turned:
        yield _View(plain.translate(_ROT13), offsets, turned=True)


def _run(text: bytes, hit: int, form: bytes, place: int) -> tuple[int, int]:
    """Return the longest stretch of ``text`` around ``hit`` that equals ``form`` around ``place``."""
    whole = hit - place
    if whole >= 0 and text.startswith(form, whole):
        return whole, whole + len(form)
    # Compare blocks: byte by byte, a long repetitive value takes seconds.
    first, at, step = hit, place, BLOCK
    while step:
        size = min(step, first, at)
        if size and text[first - size : first] == form[at - size : at]:
            first, at, step = first - size, at - size, step * 2
        else:
            step //= 2
    last, at, step = hit + GRAM, place + GRAM, BLOCK
    while step:
        size = min(step, len(text) - last, len(form) - at)
        if size and text[last : last + size] == form[at : at + size]:
            last, at, step = last + size, at + size, step * 2
        else:
            step //= 2
    return first, last


def _remainders(view: _View, form: _Form, found: tuple[int, int]) -> Iterator[Secret]:
    """Yield shorter pieces of a form close to one that was ``found``."""
    if found[1] - found[0] == len(form.text):
        return
    length = SHORT if form.plain else form.least // 2
    pieces = {form.text[at : at + length] for at in range(len(form.text) - length + 1)}
    for begin, end in ((max(0, found[0] - NEAR), found[0]), (found[1], min(len(view.text), found[1] + NEAR))):
        last = begin
        for at in range(begin, end - length + 1):
            if view.text[at : at + length] in pieces and not view.text[at : at + length].isalpha():
                yield view.secret(max(at, last), at + length, form)
                last = at + length


def _counts(form: _Form, start: int, length: int) -> bool:
    """Return whether ``length`` characters of a form from ``start`` reveal something of its value."""
    if length == len(form.text) and form.plain:
        return True
    if length < form.least:
        return False
    return not form.plain or _drawn(form.plain[start : start + length])


def _chosen(value: str) -> bool:
    """Return whether ``value`` may be made of words."""
    return len(value) <= LONGEST_CHOSEN and bool(_CHOSEN.fullmatch(value)) and not _UNSPOKEN.search(value)


def _trimmed(value: str) -> str:
    """Return ``value`` from its first letter or digit to its last."""
    places = [at for at, letter in enumerate(value) if letter in _ALNUM]
    return value[places[0] : places[-1] + 1]


def _telling(value: str, plain: str) -> bool:
    """Return whether a value is no number, date, word or short phrase that any text may contain."""
    if plain.isdigit() or len(set(plain)) < 5 or _DATE.fullmatch(value):
        return False
    return any(map(str.isdigit, plain)) or len(plain) >= WORDS or _drawn(plain)


def _drawn(piece: str) -> bool:
    """Return whether a piece looks random: case and digits change often, or it is unpronounceable."""
    if len(set(piece)) < 5 or piece.isdigit():
        return False
    classes = piece.translate(_CLASSES)
    changes = sum(one != other for one, other in pairwise(classes))
    if changes and (changes >= 3 or not _LONG_RUN.search(classes)):
        return True
    return bool(_UNSPOKEN.search(piece))


def _encodings(value: str) -> Iterator[tuple[bytes, int]]:
    """Yield encodings of a value with the minimum length of a piece."""
    raw = value.encode("utf-8", "replace")
    for data in (raw, raw[::-1]):
        yield data.hex().encode(), 20
        for skipped in range(3):
            coded = base64.b64encode(b"\0" * skipped + data)
            whole = coded[(skipped * 8 + 5) // 6 : (skipped + len(data)) * 8 // 6]
            yield whole.translate(_LOWER, _OTHERS), 16
    for skipped in range(2):
        # Two-byte words with the second byte first, as by hexdump and od -x.
        pairs = [raw[at : at + 2][::-1] for at in range(skipped, len(raw) - 1, 2)]
        yield b"".join(pairs).hex().encode(), 20
    yield "".join(map(str, raw)).encode(), 30
    yield "".join(f"{byte:03o}" for byte in raw).encode(), 30
    yield "".join(f"x{byte:02x}" for byte in raw).encode(), 30
    yield "".join(f"0x{byte:02x}" for byte in raw).encode(), 40
    yield "".join(f"u{byte:04x}" for byte in raw).encode(), 50
    # UTF-16 in either byte order.
    yield "".join(f"{byte:04x}" for byte in raw).encode(), 40
    yield "".join(f"{byte:08b}" for byte in raw).encode(), 80
    for skipped in range(5):
        coded = base64.b32encode(b"\0" * skipped + raw)
        yield coded[(skipped * 8 + 4) // 5 : (skipped + len(raw)) * 8 // 5].lower(), 18
