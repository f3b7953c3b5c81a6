"""Test doubles, processes, brokers and drivers that the tests and benchmarks of all distributions share."""
