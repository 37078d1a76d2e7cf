"""``ba data``: the commands, and rows as text. May import what the command line may."""
