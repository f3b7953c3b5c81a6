"""The chain of stores: stores, and the invoices of their terminals."""
