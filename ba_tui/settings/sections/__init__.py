"""The settings of each room, one file a room; ``model.Settings`` lists them. May import core and ``fields`` only."""
