"""Plans as models write them: prompts, parsing, checks, repairs. Asks no questions. May import what ``engine`` may, and
the lenient JSON parser of ``providers``.
"""
