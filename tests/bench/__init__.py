"""Speed: ``python -m tests.bench`` measures it. One file a family of figures, each set against a floor of the same run."""
