"""What one column of a table holds: its type, its figures and what to beware of. Where rows come from is profile.py's.

Values are counted first and judged once each, so a long column of few values costs little.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal, InvalidOperation

from workspace import Args

NOTHING = {"na", "n/a", "#n/a", "null", "none", "nan", "-", "--", "?", "unknown", "(blank)"}
TRUTHS = {"true", "false", "yes", "no", "y", "n"}
TOTALS = re.compile(r"(grand[ _]?|sub)?totals?\b|sum(me)?\b|gesamt|合计|总计|小计", re.IGNORECASE)
DRESS = re.compile(r"^[\s$€£¥₹]+|[\s$€£¥₹%]+$|^(USD|EUR|GBP|CHF|CNY|JPY)\s*|\s*(USD|EUR|GBP|CHF|CNY|JPY)$")
BARE = re.compile(r"-?\d*\.?\d*([eE][+-]?\d+)?")
POINT = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?")
COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?(,\d*)?")
DAY = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ]\d{1,2}:\d{2}\S*.*)?")
SHORT_DAY = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?: \d{1,2}:\d{2}.*)?")
EXACT = Context(prec=60)
KEPT, REMEMBERED = 50_000, 1_000_000


@dataclass
class Numbers:
    """Sums that do not drift: decimals, not floats."""

    count: int = 0
    total: Decimal = Decimal(0)
    squares: Decimal = Decimal(0)
    low: Decimal | None = None
    high: Decimal | None = None
    zero: int = 0
    negative: int = 0

    def add(self, value: Decimal, times: int) -> None:
        self.count += times
        self.total = EXACT.add(self.total, EXACT.multiply(value, times))
        self.squares = EXACT.add(self.squares, EXACT.multiply(EXACT.multiply(value, value), times))
        self.low = value if self.low is None else min(self.low, value)
        self.high = value if self.high is None else max(self.high, value)
        self.zero += times * (value == 0)
        self.negative += times * (value < 0)

    def said(self) -> Args:
        mean = EXACT.divide(self.total, self.count)
        spread = EXACT.subtract(self.squares, EXACT.multiply(self.total, mean))
        deviation = (float(spread) / (self.count - 1)) ** 0.5 if self.count > 1 and spread > 0 else 0.0
        ends = {"min": number(self.low), "max": number(self.high), "sum": number(self.total)}
        return {
            **ends,
            "mean": rounded(mean),
            "stdev": rounded(deviation),
            "zeros": self.zero,
            "negative": self.negative,
        }


@dataclass
class Days:
    """Dates under one reading."""

    count: int = 0
    first: date | None = None
    last: date | None = None
    months: Counter[str] = field(default_factory=Counter)

    def add(self, day: date, times: int) -> None:
        self.count += times
        self.first = day if self.first is None else min(self.first, day)
        self.last = day if self.last is None else max(self.last, day)
        self.months[f"{day:%Y-%m}"] += times

    def said(self) -> Args:
        if self.first is None or self.last is None:
            return {}
        span = (self.last.year - self.first.year) * 12 + self.last.month - self.first.month
        ordinals = (self.first.year * 12 + self.first.month - 1 + step for step in range(min(span, 1200) + 1))
        absent = [name for name in (f"{o // 12:04}-{o % 12 + 1:02}" for o in ordinals) if name not in self.months]
        gaps = {"months_without_rows": absent[:24]} if absent else {}
        return {"first": self.first.isoformat(), "last": self.last.isoformat(), **gaps}


@dataclass
class Column:
    """All values of one column, counted before they are judged."""

    name: str
    pending: Counter[str] = field(default_factory=Counter)
    seen: set[int] = field(default_factory=set)
    flushed: bool = False
    filled: int = 0
    empty: int = 0
    padded: int = 0
    placeholders: Counter[str] = field(default_factory=Counter)
    point: Numbers = field(default_factory=Numbers)
    comma: Numbers = field(default_factory=Numbers)
    iso: Days = field(default_factory=Days)
    day_first: Days = field(default_factory=Days)
    month_first: Days = field(default_factory=Days)
    truths: int = 0
    dressed: int = 0
    percent: int = 0
    leading_zero: int = 0
    longest: int = 0
    lines: int = 0
    totals: list[str] = field(default_factory=list)
    only_comma: int = 0
    only_point: int = 0
    unlike: dict[str, list[str]] = field(default_factory=lambda: {"number": [], "date": []})

    def take(self, value: str) -> None:
        self.pending[value] += 1
        if len(self.pending) > KEPT:
            self.flushed = True
            self.settle()
            self.pending.clear()

    def settle(self) -> None:
        for raw, times in self.pending.items():
            value = raw.strip()
            if not value:
                self.empty += times
            elif value.lower() in NOTHING:
                self.placeholders[value] += times
            else:
                self.judge(raw, value, times)

    def judge(self, raw: str, value: str, times: int) -> None:
        self.filled += times
        self.padded += times * (raw != value)
        self.longest = max(self.longest, len(value))
        self.lines = max(self.lines, value.count("\n"))
        if len(self.seen) < REMEMBERED:
            self.seen.add(hash(value))
        self.truths += times * (value.lower() in TRUTHS)
        if TOTALS.match(value) and len(self.totals) < 3:
            self.totals.append(value)
        for kind, fits in (("number", self.as_number(value, times)), ("date", self.as_date(value, times))):
            if not fits and len(self.unlike[kind]) < 5:
                self.unlike[kind].append(value[:60])

    def as_number(self, value: str, times: int) -> bool:
        bare = DRESS.sub("", DRESS.sub("", value))
        if bare.startswith("(") and bare.endswith(")"):
            bare = "-" + bare[1:-1]
        bare = bare.replace("\u2212", "-").replace("\u00a0", "").replace("\u202f", "").replace("'", "")
        point, comma = POINT.fullmatch(bare), COMMA.fullmatch(bare)
        readings = (
            decimal(bare.replace(",", "")) if point else None,
            decimal(bare.replace(".", "").replace(",", ".")) if comma else None,
        )
        for numbers, found in zip((self.point, self.comma), readings, strict=True):
            if found is not None:
                numbers.add(found, times)
        if readings == (None, None):
            return False
        self.dressed += times * (BARE.fullmatch(value) is None)
        self.percent += times * value.endswith("%")
        self.leading_zero += times * (len(bare) > 1 and bare[0] == "0" and bare.isdigit())
        self.only_point += times * (readings[1] is None)
        self.only_comma += times * (readings[0] is None)
        return True

    def as_date(self, value: str, times: int) -> bool:
        if whole := DAY.fullmatch(value):
            days = [(self.iso, day_of(whole[1], whole[2], whole[3]))]
        elif short := SHORT_DAY.fullmatch(value):
            both = (day_of(short[3], short[2], short[1]), day_of(short[3], short[1], short[2]))
            days = [(self.day_first, both[0]), (self.month_first, both[1])]
        else:
            return False
        for place, day in days:
            if day is not None:
                place.add(day, times)
        return any(day is not None for _, day in days)


def decimal(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 300 else None


def day_of(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def number(value: Decimal | None) -> float | int | None:
    if value is None:
        return None
    return int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)


def rounded(value: Decimal | float) -> float:
    return float(f"{float(value):.6g}") if abs(float(value)) < 1 else round(float(value), 6)


def described(column: Column, rows: int) -> tuple[Args, list[str]]:
    """What is in the column, and what to beware of."""
    column.settle()
    name, notes = column.name, []
    distinct: object = len(column.seen) if len(column.seen) < REMEMBERED else f"at least {REMEMBERED}"
    kind, more, odd = judged(column, notes)
    said: Args = {"name": name, "type": kind, "filled": column.filled, "empty": column.empty, "distinct": distinct}
    if column.placeholders:
        said["placeholders"] = dict(column.placeholders.most_common(5))
        notes.append(
            f"{sum(column.placeholders.values())} values such as {next(iter(column.placeholders))!r} mean nothing"
        )
    if odd:
        notes.append(f"{odd} of {column.filled} values are not a {kind}: {', '.join(column.unlike[kind])}")
    if column.lines > 20:
        notes.append(f"one cell holds {column.lines} lines: is a quote not closed, and are rows hidden in it?")
    if column.padded:
        notes.append(f"{column.padded} values have spaces around them")
    if not column.flushed:
        said |= values_of(column, kind, notes)
    if kind == "text":
        said["longest"] = column.longest
    if column.totals and kind == "text":
        notes.append(f"{column.totals[0]!r} looks like a totals row among the data")
    if rows > 1 and column.filled == rows and distinct == 1:
        notes.append("the same value everywhere")
    return said | more, [f"{name}: {note}" for note in notes]


def judged(column: Column, notes: list[str]) -> tuple[str, Args, int]:
    """The type that most values have, its figures, and how many values do not fit."""
    filled = column.filled
    numbers = column.comma if column.only_comma > column.only_point else column.point
    shorts = column.month_first if column.month_first.count > column.day_first.count else column.day_first
    days = column.iso if column.iso.count >= shorts.count else shorts
    if not filled:
        return "empty", {}, 0
    if column.truths == filled:
        return "boolean", {}, 0
    if days.count >= max(0.8 * filled, 1):
        if days is not column.iso and column.day_first.count == column.month_first.count:
            notes.append("day and month cannot be told apart (01/02/2024); read as day first")
        elif days is not column.iso:
            notes.append(f"dates are written {'month' if days is column.month_first else 'day'} first")
        return "date", days.said(), filled - days.count
    if numbers.count >= max(0.8 * filled, 1):
        number_notes(column, notes)
        return "number", numbers.said(), filled - numbers.count
    if numbers.count >= 0.05 * filled:
        notes.append(f"numbers and words mixed: {numbers.count} of {filled} are numbers")
    return "text", {}, 0


def number_notes(column: Column, notes: list[str]) -> None:
    if column.leading_zero:
        notes.append(f"{column.leading_zero} numbers begin with 0: codes, not quantities? Keep them as text")
    if column.percent:
        notes.append(f"{column.percent} values carry a % sign: 12% counts as 12 here")
    if column.only_comma and column.only_point:
        notes.append(f"decimal points ({column.only_point}) and decimal commas ({column.only_comma}) are mixed")
    elif column.only_comma:
        notes.append("decimal commas: 1.234,5 is read as 1234.5")
    if column.dressed:
        notes.append(f"{column.dressed} numbers carry signs or separators and are text to most programs")


def values_of(column: Column, kind: str, notes: list[str]) -> Args:
    """The usual values, the middle ones, and spellings of the same word."""
    counted: Counter[str] = Counter()
    for raw, times in column.pending.items():
        if raw.strip() and raw.strip().lower() not in NOTHING:
            counted[raw.strip()] += times
    said: Args = {"top": [[value[:60], times] for value, times in counted.most_common(5)]} if counted else {}
    if kind == "text" and len(counted) <= 2000:
        folded: dict[str, list[str]] = {}
        for value in counted:
            folded.setdefault(" ".join(value.casefold().split()), []).append(value)
        if alike := [names for names in folded.values() if len(names) > 1]:
            notes.append(f"{len(alike)} values are spelt in several ways: {' / '.join(alike[0][:4])}")
    if kind == "number" and not column.only_comma and not column.dressed:
        said |= quartiles(counted, notes)
    return said


def quartiles(counted: Counter[str], notes: list[str]) -> Args:
    found = ((decimal(value.replace(",", "")), times) for value, times in counted.items() if POINT.fullmatch(value))
    ordered = sorted((value, times) for value, times in found if value is not None)
    count = sum(times for _, times in ordered)
    if count < 4:
        return {}
    steps = [nearest(ordered, share * (count - 1)) for share in (0.25, 0.5, 0.75)]
    reach = 3 * (steps[2] - steps[0])
    far = sum(times for value, times in ordered if reach and not steps[0] - reach <= value <= steps[2] + reach)
    if far:
        notes.append(f"{far} values lie far outside the middle half ({number(steps[0])} to {number(steps[2])})")
    return {"quartiles": [number(step) for step in steps]}


def nearest(ordered: list[tuple[Decimal, int]], place: float) -> Decimal:
    passed = 0
    for value, times in ordered:
        passed += times
        if passed > place:
            return value
    return ordered[-1][0]
