"""Text as data: what is shown of it, patterns, wording. Imports the standard library, core.values and, late, yaml."""
