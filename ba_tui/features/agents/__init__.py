"""Sub-agents of a session. Imports the base only; no other feature imports it."""
