"""The servers: what callers and peers can ask, how much of it at once, and the page for operators."""
