"""Teams of agents. Imports the base; no other feature imports it."""
