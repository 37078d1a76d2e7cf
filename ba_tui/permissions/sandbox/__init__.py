"""The sandbox: mechanisms, visible files, profiles, protected files. May import what permissions may."""
