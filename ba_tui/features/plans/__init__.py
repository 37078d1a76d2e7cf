"""Plans, plan mode and workflows of a session. Imports the base only; no other feature imports it."""
