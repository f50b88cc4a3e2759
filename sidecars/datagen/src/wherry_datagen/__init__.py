"""Records made up at any rate, the same ones for the same seed."""
