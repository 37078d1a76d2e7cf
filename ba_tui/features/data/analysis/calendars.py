"""A calendar as a query: one row for each day with its week, business days of a country, and the fiscal year."""

from __future__ import annotations

from datetime import date, timedelta

from ba_tui.core.text.wording import correction
from ba_tui.features.data.analysis.errors import QueryFailed

LONGEST_YEARS = 100
SATURDAY_SUNDAY = frozenset({5, 6})


def calendar_query(first: str, last: str, country: str = "", fiscal_start: int = 1) -> str:
    """Return a SELECT with one row for each day from ``first`` to ``last``, ISO dates. ``country``: a code such as DE,
    a subdivision (DE-BY), or a market (NYSE); empty for weekends only. ``fiscal_start``: the first month of a fiscal
    year, 1 to 12, which is named by the year in which it ends. May block. Raises QueryFailed: a date is invalid or the
    country unknown."""
    start, end = _day(first), _day(last)
    if end < start:
        raise QueryFailed(f"The calendar ends on {end}, before it begins on {start}.")
    if end.year - start.year > LONGEST_YEARS:
        raise QueryFailed(f"A calendar has at most {LONGEST_YEARS} years.")
    if not 1 <= fiscal_start <= 12:
        raise QueryFailed("A fiscal year begins in a month from 1 to 12.")
    holidays, weekend = _holidays(country, start, end) if country else ({}, SATURDAY_SUNDAY)
    rows = ", ".join(f"(DATE '{day}', {_text(name)})" for day, name in sorted(holidays.items()))
    named = (
        f"(VALUES {rows}) AS h(holiday_day, holiday)"
        if rows
        else "(SELECT NULL::DATE AS holiday_day, '' AS holiday) AS h"
    )
    free = ", ".join(str(day + 1) for day in sorted(weekend)) or "0"
    month = f"((month(day) - {fiscal_start} + 12) % 12 + 1)"
    later = f"CASE WHEN month(day) >= {fiscal_start} THEN 1 ELSE 0 END" if fiscal_start > 1 else "0"
    return (
        f"SELECT day, dayname(day) AS weekday, weekofyear(day) AS iso_week, month(day) AS month, "
        f"quarter(day) AS quarter, year(day) AS year, isodow(day) IN ({free}) AS is_weekend, holiday, "
        f"isodow(day) NOT IN ({free}) AND holiday IS NULL AS is_business_day, year(day) + {later} AS fiscal_year, "
        f"(({month} - 1) // 3 + 1) AS fiscal_quarter, {month} AS fiscal_month FROM "
        f"(SELECT CAST(range AS DATE) AS day FROM range(DATE '{start}', DATE '{end + timedelta(1)}', INTERVAL 1 DAY)) "
        f"AS days LEFT JOIN {named} ON day = holiday_day ORDER BY day"
    )


def _holidays(country: str, start: date, end: date) -> tuple[dict[date, str], frozenset[int]]:
    """Return the holidays by day, and the weekdays without work, counted from 0 for Monday."""
    import holidays  # noqa: PLC0415 - large and rarely used

    code, _, part = country.strip().upper().partition("-")
    known, markets = holidays.list_supported_countries(), holidays.list_supported_financial()
    years = range(start.year, end.year + 1)
    if code in markets:
        found = holidays.financial_holidays(code, years=years)
    elif code not in known:
        hint = correction(code, [*known, *markets], "Give the code of a country (DE, US, JP) or market (NYSE, ECB).")
        raise QueryFailed(f"No holidays are known for {country}.", hint)
    elif part and part not in {each.upper() for each in known[code]}:
        raise QueryFailed(f"{code} has no part {part}.", f"Parts: {', '.join(known[code][:30]) or 'none'}.")
    else:
        proper = next((each for each in known[code] if each.upper() == part), None)
        found = holidays.country_holidays(code, subdiv=proper, years=years)
    named = {day: name for day, name in found.items() if start <= day <= end}
    return named, frozenset(getattr(found, "weekend", SATURDAY_SUNDAY))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise QueryFailed(f"{text[:40]!r} is no date.", "Write dates as 2026-01-31.") from None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''").replace("\0", "") + "'"
