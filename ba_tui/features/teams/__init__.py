"""Teams of agents. Imports the base only; no other feature imports it."""
