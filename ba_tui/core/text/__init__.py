"""Pure functions over text. Imports the standard library, core.values, rich.cells and, late, yaml."""
