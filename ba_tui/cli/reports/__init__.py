"""Commands that write reports and run them again. May import what the command line imports."""
