"""Plans in a session: the tool plan, plan mode, workflows as tools. Imports the base and the engine."""
