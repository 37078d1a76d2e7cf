"""Memory across sessions. Imports the base only; no other feature imports it."""
