"""How many small tasks a model file does through the local provider, against the plain OpenAI path."""
