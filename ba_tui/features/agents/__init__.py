"""Sub-agents of a session. Imports the base; no other feature imports it."""
