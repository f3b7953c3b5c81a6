"""Targets of the fuzz tests: real servers on real sockets, and their logs."""
