"""Data of a session: engine, sources, Python, checked figures. Imports the base; no other feature imports it."""
