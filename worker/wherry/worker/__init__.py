"""The worker: runs leases inside Spark's Python processes and pumps batches from a reader to a writer.

May import `wherry.contract` and the stubs only. Start reading at `lease.py` (a lease's life) or `pump.py` (its loop).
Importing this package makes no channel, client or thread, because workers are forked.
"""
