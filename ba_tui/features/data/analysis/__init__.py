"""Analysis of data: datasets, SQL results, charts, forecasts and reports.

``engine.Analysis`` is the client of the data engine. Its helper process runs ``engine_process``, which no other module
imports, and which alone imports duckdb.
"""
