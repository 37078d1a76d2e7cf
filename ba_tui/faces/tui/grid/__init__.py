"""A table of the data engine as a grid: paged, sorted, filtered, copied, exported. May import what the face may."""
