"""Data of a session: the engine, sources, charts, Python and reports. May import the base, no other feature."""
