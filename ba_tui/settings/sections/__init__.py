"""Groups of settings by subject; ``model.Settings`` lists them. May import core and ``fields`` only."""
