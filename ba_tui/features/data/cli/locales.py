"""Figures as people of a locale write them: 1.234,5 in German, 1,234.5 in English. Only for tables that people read."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Column
from ba_tui.core.text.patterns import regex

FigureFormat: TypeAlias = Callable[[Any, Column], str | None]
"""What to print for a value; None for one that is printed as it is."""
GROUPED = 10_000
"""Whole numbers below are not grouped: many are years."""
_NAME_OF_KEY = regex(r"(?i)(?:^|_|\b)(?:id|key|code|no|nr|number|year|jahr|zip|plz)$|id$")


def figure_format(locale: str) -> FigureFormat:
    """Return the format of ``locale``, such as ``de_DE`` or ``en-US``; ids and years stay as they are.

    Raises:
        UsageError: the locale is unknown, or the package babel is missing.
    """
    try:
        from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - an extra
        from babel.numbers import format_decimal  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("A locale needs the package babel.", "Run pip install 'ba-tui[locale]'.") from error
    try:
        known = Locale.parse(locale.replace("-", "_"))
    except (UnknownLocaleError, ValueError) as error:
        raise UsageError(f"There is no locale {locale!r}.", "Write it as de_DE, en_GB or fr.") from error

    def formatted(value: Any, column: Column) -> str | None:
        if value is None or not column.numeric or _NAME_OF_KEY.search(column.name):
            return None
        number = Decimal(str(value))
        if not number.is_finite() or (column.kind == "integer" and abs(number) < GROUPED):
            return None
        digits = max(0, -int(number.as_tuple().exponent))
        # As many digits as the value has: a zero at the end of a decimal says how exact it is.
        pattern = f"#,##0{'.' if digits else ''}{'0' * digits}"
        return format_decimal(number, format=pattern, locale=known)

    return formatted
