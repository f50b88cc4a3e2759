"""Generated stubs; see protos/."""
