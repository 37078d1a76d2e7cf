"""Commands, options and lines of input of other assistants. Imports the base."""
