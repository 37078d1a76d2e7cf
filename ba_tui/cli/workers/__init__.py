"""`ba worker`: joins a team from another process. May import assembly and what all commands may."""
