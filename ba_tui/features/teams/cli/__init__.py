"""`ba team` and `ba worker`. May import what the command line may."""
