"""How many calls are read right out of what models have really written."""
