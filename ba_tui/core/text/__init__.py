"""Text as data: what is shown of it, patterns, wording. Imports the standard library and core.values alone."""
