"""Settings files of Claude Code as a layer of ba's own settings. May import what settings may."""
