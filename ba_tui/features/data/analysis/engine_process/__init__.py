"""What runs in the helper process: DuckDB, loading, profiles, pages. May import analysis values, core and processes."""
