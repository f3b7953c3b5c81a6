"""Inputs of the fuzz tests: valid texts, documents, messages and requests, mutated in a few places."""
