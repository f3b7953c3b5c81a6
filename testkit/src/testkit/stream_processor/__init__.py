"""Drivers and models for the tests of the stream processor; nothing else imports them."""
