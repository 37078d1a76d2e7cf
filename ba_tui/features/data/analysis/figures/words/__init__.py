"""What words and numbers mean by themselves: numerals, dates, units, hints of six languages. May import core alone."""
