"""How ba stands and what it works with: status, doctor, settings, hooks, context files. Import the frames beside."""
