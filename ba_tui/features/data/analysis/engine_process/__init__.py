"""The program of the data engine: loads files into DuckDB, runs SQL, profiles tables, serves pages and charts.

May import core, processes, and the values of ``analysis``.
"""
