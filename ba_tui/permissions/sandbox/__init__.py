"""The sandbox: mechanisms, what a confined program sees, profiles, protected files. May import what permissions may."""
