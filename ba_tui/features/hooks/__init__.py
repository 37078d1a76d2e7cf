"""The user's hooks: commands and prompts on events. Imports the base only; no other feature imports it."""
