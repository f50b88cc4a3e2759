"""The peer harness: Wherry and the real Kafka Connect, alternately, on the same machine, topic and destination.

Start reading at `README.md`, then `runner.py` (how runs alternate), `systems.py` (what is compared) and `flows/`.
"""
