"""Puts dead letters back onto their source topic."""
