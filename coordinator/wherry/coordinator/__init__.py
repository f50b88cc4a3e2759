"""The engine: which work runs where, in what state, and what the world is told of it."""
