"""A sidecar that misbehaves on request.

It stands on the generated stubs and `wherry.contract` alone, because the SDK would not let it do most of this. Start
reading at `modes`, which names every misbehaviour.
"""
