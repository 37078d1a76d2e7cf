"""What may run: paths, rules, modes and what the person has allowed. May import core, resources and settings."""
