"""Generated stubs of wherry.control.v1."""
