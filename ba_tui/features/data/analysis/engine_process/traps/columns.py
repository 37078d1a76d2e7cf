"""Traps in the values of one column: placeholders, mixed units, spellings, date orders or time zones."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.ports.tables import Column, Dataset, TrapFinding
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted, text
from ba_tui.features.data.analysis.engine_process.traps.probes import Prober, known, stems, words

MISSING = known(
    "- -- --- – — n/a na #n/a #n/v #ref! #div/0! #value! #name? null <na> none nan nil ? ?? . .. ... … * ** : x "
    "xx xxx n.a. n.d. n.v. nd nv k.a. ka k.a keineangabe keineangaben keinedaten unbekannt fehlt unknown missing "
    "tbd tba notavailable notapplicable notreported notrecorded nodata notknown suppressed withheld undefined "
    "blank (blank) empty (empty) (null) s/d sindato sindatos inconnu nc n.c. nonrenseigné н/д нетданных 无 暂无 未知 "
    "不明 brak brakdanych b.d. bd"
)
"""Lower-case words for missing values, without spaces."""
DECORATED = (
    r"(?:[~<>≈±≤≥*'`†#]|ca\.?|c\.|approx\.?|about|etwa|circa)?\s*{}\s*"
    r"(?:[*†‡?+#^~]|\([a-z]\)|\(est\.?\)|est\.?|[pre])?"
)
UNITS = known(
    "mm cm m km in ft yd mi mg g kg t lb lbs oz st ml cl dl l hl gal s sec min h hr d °c °f c f k wh kwh mwh gwh "
    "w kw mw kb mb gb tb ha m2 m² m3 m³ bar psi miles mile pounds pound kgs kilo kilos grams gram meters metres "
    "meter metre feet foot inch inches litre liter litres liters ounces tons tonnes ton hours hour minutes minute "
    "mins hrs days day weeks week months month years year seconds secs sqft acres acre kcal kj cal mph km/h kmh "
    "kph m/s mg/l g/l µg/l ug/l mg/dl mmol/l ppm ppb celsius fahrenheit pcs stk stück dozen boxes kpa hpa mmhg "
    "std tage 公里 千米 米 厘米 英里 公斤 千克 克 斤 吨 磅 升 毫升 小时 分钟 天"
)
CURRENCIES = known(
    "$ € £ ¥ ₹ ₽ ₩ usd eur gbp chf jpy cny sek nok dkk pln czk huf aud cad nzd inr brl mxn zar rub krw thb sgd "
    "hkd try rmb us$ a$ c$ r$ hk$ fr. sfr. fr sfr rs rs. kr kr. zł euro euros dollar dollars pounds yen yuan 元 "
    "人民币 美元 欧元 日元 港币"
)
NUMBER = r"[-+]?(?:\d{1,3}(?:[,.'\s\x{00a0}]\d{3})+|\d+)(?:[.,]\d+)?"
SCALED = rf"[$€£¥₹]?\s*(?:{NUMBER})\s*(?i:k|m|b|bn|mn|tsd\.?|mio\.?|mrd\.?|million|billion|万|亿)"
AMOUNT = rf"\(?[$€£¥₹]?\s*{NUMBER}\s*[$€£¥₹%]?\)?-?"
CODES = (97, 98, 88, 888, 998, 8888, 9998)
SENTINELS = (
    *CODES, -8, -88, -98, -1, -9, -99, -999, -9999, -99999, -99.9, -999.9, -9999.9, 99, 999, 9999, 99999, 999999,
    999.9, 9999.9,
)  # fmt: skip
DATES = ("9999-12-31", "9999-12-30", "9999-01-01", "2999-12-31", "2100-12-31", "2100-01-01", "2099-12-31", "1900-01-01",
         "1901-01-01", "1899-12-30", "1899-12-31", "1753-01-01", "1970-01-01", "0001-01-01")  # fmt: skip
NO_QUANTITIES = stems(
    "id no number code year zip plz amount price total revenue cost sales betrag umsatz population pop"
)
SIGNED = stems("change diff difference delta balance temp temperature growth margin profit net score saldo result "
               "longitude latitude lon lat x y z return returns goal points elevation gewinn veränderung")  # fmt: skip
LENGTHS = stems("height length width size depth diameter altitude groesse laenge hoehe breite")
KEY_WORDS = stems("id code key zip plz postcode phone tel no nr version ip fax isbn ean")
SAMPLED_ABOVE, MOST_COLUMNS = 50_000, 200
SHORT_DATE = r"\s*(\d{1,2})[/.-](\d{1,2})[/.-](\d{2}|\d{4})\s*"
ZONE = (
    r"\d\s*\(?((?:UTC|GMT)?\s?[+-]\d{1,2}(?::?\d{2})?|Z|UTC|GMT|[ECMP]T|MEZ|MESZ|[A-Z]{2,4}T|[A-Z][a-z]+/[A-Z]\w+)"
    r"\)?\s*$"
)


@frozen
class ColumnValues:
    """One column of a dataset. ``source`` is the table, or a sample of a large one."""

    dataset: Dataset
    column: Column
    source: str

    @property
    def name(self) -> str:
        return quoted(self.column.name)

    @property
    def shown(self) -> str:
        """The column that the user knows: the converted one if this one keeps its text, else itself."""
        made = (each for each in self.dataset.conversions if each.raw == self.column.name)
        return next((each.column for each in made), self.column.name)

    def finding(self, trap: str, message: str, where: str) -> TrapFinding:
        table = quoted(self.dataset.name)
        proof = f"SELECT {self.name}, count(*) AS n FROM {table} WHERE {where} GROUP BY 1 ORDER BY n DESC"
        return TrapFinding(trap, self.dataset.name, f"{self.dataset.name}.{self.shown} {message}", proof, self.shown)


def column_findings(dataset: Dataset, probe: Prober) -> Iterator[TrapFinding]:
    """Yield the traps in the values of each column."""
    table = quoted(dataset.name)
    source = table if dataset.rows <= SAMPLED_ABOVE else probe.sample(dataset.name, dataset.rows)
    for column in dataset.columns[:MOST_COLUMNS]:
        values = ColumnValues(dataset, column, source)
        if column.kind == "text":
            yield from _texts(values, probe)
        elif column.numeric:
            yield from _placeholders(values, probe)
            yield from _clusters(values, probe)
        elif column.kind in {"date", "timestamp"}:
            yield from _no_dates(values, probe)
            yield from _either_order(values, probe)


def _texts(values: ColumnValues, probe: Prober) -> Iterator[TrapFinding]:
    v = f"trim({values.name})"
    missing = f"lower(regexp_replace({v}, '\\s+', '', 'g')) IN ({', '.join(map(text, sorted(MISSING)))})"
    word = f"NOT ({missing}) AND {v} <> '' AND NOT regexp_matches({v}, '\\d')"
    full = f"count(*) FILTER (regexp_full_match({v}, {{}}))"
    figures = probe.one(
        f"""SELECT count(*) FILTER ({v} <> ''), count(*) FILTER ({missing}),
            {full.format(text(NUMBER))}, {full.format(text("0[0-9]+"))}, {full.format(text("[0-9]+"))},
            count(*) FILTER (regexp_matches({v}, '\\d\\.\\d{{1,2}}\\D*$') AND NOT regexp_matches({v}, '\\.\\d+\\.')),
            count(*) FILTER (regexp_matches({v}, '\\d,\\d{{1,2}}\\D*$')),
            {full.format(text(SHORT_DATE))},
            count(*) FILTER (regexp_matches({v}, {text(ZONE)}) AND regexp_matches({v}, '\\d:\\d\\d')),
            count(*) FILTER (regexp_matches({v}, '\\d:\\d\\d')), {full.format(text(SCALED))},
            {full.format(text(AMOUNT))}, {full.format(text(DECORATED.format(NUMBER)))},
            count(*) FILTER ({word}), list(DISTINCT {v}) FILTER ({word})
        FROM {values.source}"""
    )
    if not figures or not figures[0]:
        return
    filled, holes, numbers, zeros, digits, points, commas, dates, zones, times = figures[:10]
    scaled, amounts, decorated, worded, held = figures[10:]
    few = [each for each in held or () if each.casefold() != values.column.name.casefold()]
    if (
        worded > 1
        and len(few) == 1
        and len(few[0]) <= 16
        and amounts >= 0.6 * filled
        and amounts + holes + worded == filled
    ):
        # A single word among numbers means a missing value, in any language.
        missing = f"({missing} OR {v} = {text(few[0])})"
        holes += worded
    rest = filled - holes
    if not rest:
        return
    if holes and (amounts >= 0.6 * rest or dates >= 0.6 * rest):
        yield values.finding("sentinels", f"has {count(holes, 'placeholder')} for a missing value.", missing)
    if zeros and digits >= 0.95 * rest:
        yield values.finding(
            "leading_zeros",
            f"holds {count(zeros, 'code')} with leading zeros: as numbers they would lose them.",
            f"regexp_full_match({v}, '0[0-9]+')",
        )
    elif dates < 0.6 * rest and points and commas and amounts >= 0.8 * rest:
        message = f"has {count(commas, 'number')} with decimal comma and {points:,} with decimal point."
        yield values.finding("mixed_decimals", message, f"regexp_matches({v}, '[.,]\\d{{1,2}}\\D*$')")
    elif values.column.name != values.shown:
        if not holes and max(amounts, decorated) >= 0.8 * rest and dates < 0.6 * rest:
            message = f"was text in the file; ba read {count(amounts, 'value')} as numbers."
            yield values.finding("text_numbers", message, f"{v} <> ''")
    elif (
        max(numbers, decorated if numbers >= 0.5 * rest else 0, scaled) >= 0.8 * rest
        and dates < 0.6 * rest
        and not stems(values.shown) & KEY_WORDS
    ):
        message = f"keeps {count(max(numbers, scaled), 'number')} as text: they sort and compare letter by letter."
        yield values.finding("text_numbers", message, f"regexp_full_match({v}, {text(f'{NUMBER}|{SCALED}')})")
    yield from _units(values, probe, rest)
    if dates >= 0.8 * rest:
        yield from _orders(values, probe)
    if times >= 0.8 * rest and zones:
        yield from _zones(values, probe, times - zones)


def _units(values: ColumnValues, probe: Prober, rest: int) -> Iterator[TrapFinding]:
    v = f"trim({values.name})"
    after, before = rf"^{NUMBER}\s*([^\d\s.,]{{1,10}}[23.]?)$", rf"^([^\d\s.,+-]{{1,4}})\s*-?{NUMBER}$"
    unit = f"lower(coalesce(nullif(regexp_extract({v}, {text(after)}, 1), ''), regexp_extract({v}, {text(before)}, 1)))"
    rows = probe.rows(f"SELECT {unit} AS unit, count(*) FROM {values.source} GROUP BY 1 HAVING unit <> ''")
    for trap, names, what in (("mixed_currency", CURRENCIES, "currencies"), ("mixed_units", UNITS, "units")):
        found = {unit: n for unit, n in rows if unit in names}
        if len(found) > 1 and sum(found.values()) >= 0.6 * rest:
            yield values.finding(trap, f"mixes {what}: {', '.join(sorted(found))}.", f"{unit} <> ''")


def _orders(values: ColumnValues, probe: Prober) -> Iterator[TrapFinding]:
    """Find date texts whose order of day and month is ambiguous or mixed."""
    first, second = (f"TRY_CAST(regexp_extract({values.name}, {text(SHORT_DATE)}, {n}) AS INTEGER)" for n in (1, 2))
    row = probe.one(f"SELECT count(*) FILTER ({first} > 12), count(*) FILTER ({second} > 12) FROM {values.source}")
    where = f"regexp_full_match({values.name}, {text(SHORT_DATE)})"
    if row and row[0] and row[1]:
        message = f"has dates with the day first ({row[0]:,}) and with the month first ({row[1]:,})."
        yield values.finding("ambiguous_dates", message, where)
    elif row and not row[0] and not row[1]:
        message = "has dates whose day and month can't be told apart: no number is above 12."
        yield values.finding("ambiguous_dates", message, where)


def _zones(values: ColumnValues, probe: Prober, without: int) -> Iterator[TrapFinding]:
    zone = f"regexp_extract(trim({values.name}), {text(ZONE)}, 1)"
    rows = probe.rows(f"SELECT {zone} AS zone, min({values.name}), max({values.name}) FROM {values.source} GROUP BY 1")
    zones = sorted(str(row[0]) for row in rows if row[0])
    ordered = sorted((row for row in rows if row[0]), key=lambda row: str(row[1]))
    apart = len(ordered) == 2 and str(ordered[0][2]) <= str(ordered[1][1])
    if len(zones) > 1 and not (apart and all(zone[0] in "+-" for zone in zones)):
        yield values.finding(
            "mixed_timezones", f"mixes times of several zones: {', '.join(zones[:5])}.", f"{zone} <> ''"
        )
    elif without > 0:
        message = f"has times with the zone {zones[0]} and {without:,} without any."
        yield values.finding("mixed_timezones", message, f"{values.name} IS NOT NULL")


def _placeholders(values: ColumnValues, probe: Prober) -> Iterator[TrapFinding]:
    """Find numbers such as -1 or 999 far from all others."""
    if "id" in words(values.shown) or values.dataset.rows < 4:
        return
    listed = ", ".join(map(str, SENTINELS))
    name = values.name
    rows = probe.rows(
        f"SELECT {name}::DOUBLE, count(*) FROM {values.source} WHERE {name}::DOUBLE IN ({listed}) GROUP BY 1"
    )
    if not rows:
        return
    others = probe.one(
        f"SELECT min({name})::DOUBLE, max({name})::DOUBLE, count(*) FROM {values.source} "
        f"WHERE {name}::DOUBLE NOT IN ({', '.join(str(row[0]) for row in rows)})"
    )
    if not others or others[2] < 3:
        return
    low, high = others[0], others[1]
    for value, n in sorted(rows):
        nines = len(str(abs(value)).replace(".0", "").replace(".", "")) >= 3
        if value < 0:
            never = value == -1 and low >= 0 and (n > 1 or (high >= 10 and not stems(values.shown) & SIGNED))
            odd = never or (value < -1 and low > value / (3 if nines else 5) and (nines or n > 1))
        else:
            single = 3 if nines and value > 9000 else 5
            odd = (
                high > 0
                and (n > 1 or low >= 0 or value > 9000)
                and value > (1.5 if n > 1 and value not in CODES else single) * high
            )
        if odd:
            shown = f"{value:g}"
            message = f"has {count(n, 'value')} {shown}, far from the others ({low:g} to {high:g}): probably “missing”."
            yield values.finding("sentinels", message.replace("“", '"').replace("”", '"'), f"{name}::DOUBLE = {shown}")
            return


def _clusters(values: ColumnValues, probe: Prober) -> Iterator[TrapFinding]:
    """Find two separate groups of numbers whose distance is explained by a change of units."""
    name = values.name
    length = bool(stems(values.shown) & LENGTHS)
    if values.dataset.rows < (5 if length else 8) or stems(values.shown) & NO_QUANTITIES:
        return
    found = probe.rows(
        f"""WITH v AS (SELECT DISTINCT {name}::DOUBLE AS x FROM {values.source} WHERE {name} > 0),
            gaps AS (SELECT x, lead(x) OVER (ORDER BY x) AS y FROM v)
        SELECT x, y FROM gaps WHERE y IS NOT NULL ORDER BY y / x DESC LIMIT 1"""
    )
    if not found or found[0][1] < 3 * found[0][0]:
        return
    low, high = found[0]
    row = probe.one(
        f"SELECT min(x), median(x) FILTER (x <= {low}), median(x) FILTER (x >= {high}), max(x), "
        f"count(*) FILTER (x <= {low}), count(*) FILTER (x >= {high}) FROM "
        f"(SELECT {name}::DOUBLE AS x FROM {values.source} WHERE {name} > 0)"
    )
    if not row or min(row[4], row[5]) < (2 if length else 3) or _explained(values, probe, high):
        return
    least, middle, other, most = row[:4]
    for factor, tight in ((1000, False), (100, True)):
        if tight and not length:
            continue
        fits = 0.8 * least <= high / factor and most / factor <= 1.2 * low and 0.4 < other / middle / factor < 2.5
        if fits and (not tight or (low < 3 * least and most < 3 * high)):
            message = f"has {count(int(row[5]), 'value')} from {high:g} on and none between {low:g} and {high:g}: "
            yield values.finding("mixed_units", f"{message}a factor of {factor:,} fits.", f"{name} >= {high}")
            return
    if (
        0.8 * least <= (high - 32) / 1.8
        and (most - 32) / 1.8 <= 1.2 * low
        and stems(values.shown) & stems("temp temperature celsius fahrenheit grad t")
    ):
        message = f"jumps from about {middle:g} to about {other:g}: probably Celsius and Fahrenheit."
        yield values.finding("mixed_units", message, f"{name} >= {high}")


def _explained(values: ColumnValues, probe: Prober, high: float) -> bool:
    """Return whether another column separates both groups, as a species does."""
    for column in values.dataset.columns:
        if column.kind == "text" and column.name != values.column.name:
            other = quoted(column.name)
            row = probe.one(
                f"SELECT count(*), count(DISTINCT big) FROM (SELECT {other}, {values.name} >= {high} AS big, "
                f"count(*) OVER (PARTITION BY {other}) AS n FROM {values.source}) WHERE n > 1 "
                f"GROUP BY {other} ORDER BY 2 DESC LIMIT 1"
            )
            repeated = probe.number(f"SELECT count(*) / count(DISTINCT {other}) FROM {values.source}")
            if row and row[1] == 1 and repeated > 2:
                return True
    return False


def _no_dates(values: ColumnValues, probe: Prober) -> Iterator[TrapFinding]:
    """Find dates such as 9999-12-31 that mean "none"."""
    day = f"CAST({values.name} AS DATE)"
    listed = ", ".join(f"DATE '{each}'" for each in DATES)
    rows = probe.rows(
        f"SELECT {day}::VARCHAR AS day, count(*) AS n FROM {values.source} WHERE {day} IN ({listed}) GROUP BY 1"
    )
    for day_text, n in sorted(rows):
        near = probe.number(
            f"SELECT count(*) FROM {values.source} WHERE {day} <> DATE '{day_text}' "
            f"AND abs(date_diff('day', {day}, DATE '{day_text}')) < 400"
        )
        years = probe.number(
            f"SELECT min(abs(date_diff('year', {day}, DATE '{day_text}'))) FROM {values.source} "
            f"WHERE {day} <> DATE '{day_text}'"
        )
        if not near and (n > 1 or years > 25 or day_text >= "2900"):
            message = f"has {day_text} {count(n, 'time')}: it stands for no date."
            yield values.finding("sentinels", message, f"{day} = DATE '{day_text}'")


def _either_order(values: ColumnValues, probe: Prober) -> Iterator[TrapFinding]:
    """Find converted dates whose day and month could be swapped."""
    if values.shown not in values.dataset.day_first:
        return
    name, table = values.name, quoted(values.dataset.name)
    proof = (
        f"SELECT min({name}) AS first, max({name}) AS last, max(day({name})) AS highest_day FROM {table} "
        "HAVING highest_day <= 12"
    )
    several = probe.number(f"SELECT count(DISTINCT (day({name}), month({name}))) FROM {values.source}")
    if several > 2 and probe.rows(proof):
        message = (
            f"{values.dataset.name}.{values.shown} has dates whose day and month can't be told apart: none is above 12."
        )
        yield TrapFinding("ambiguous_dates", values.dataset.name, message, proof, values.shown)
