"""The contract's domain types: what every room of Wherry shares beside the generated stubs.

Import from the modules, not from here: `wherry.contract.batch`, `wherry.contract.errors` and so on. A process pays for
what it imports only.
"""
