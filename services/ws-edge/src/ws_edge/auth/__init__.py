"""Admits callers: their identity from the gateway, when it expires, allowed origins, and quotas."""
