"""Runs a command for every row of a store, once in each run, beside the instances that own the rows."""
