"""The commands ``ba data`` and ``ba report``. May import what the command line may."""
