"""What the fuzz tests send: sound texts, documents, messages and requests, changed in a few places."""
