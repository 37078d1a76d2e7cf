"""What a session does with plans: the tool plan, plan mode, workflows as tools. Imports the base and the engine."""
