"""Plans, plan mode and workflows of a session. Imports the base; no other feature imports it."""
