"""Changes to files: exact replacements, patches, notebooks, written whole or not at all. May import what tools may."""
