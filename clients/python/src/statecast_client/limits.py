"""The limits of a call: how much it asks for, and how large an answer it takes."""

MAX_KEYS = 1000
"""The most keys of one batch."""
MAX_CALLS = 4
"""The most calls in flight to one instance before single lookups gather until one has ended."""
MAX_RESPONSE_BYTES = 64 << 20
"""The largest response that a channel takes; a batch has to say so, since most clients of gRPC take 4 MiB."""
