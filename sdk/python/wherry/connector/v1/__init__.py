"""Generated stubs of wherry.connector.v1."""
