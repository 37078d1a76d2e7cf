"""What may run: paths, rules, modes, and what the user has allowed. May import core, resources and settings."""
