"""Lookups: in the own stores, at one peer, and routed to whichever replica answers."""
