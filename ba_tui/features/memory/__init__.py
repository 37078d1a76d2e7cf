"""Memory across sessions. Imports the base; no other feature imports it."""
