"""Reads the cases, runs them side by side on real parts, and writes the page that they make."""
