"""What the tests of this service are made with; nothing else imports it."""
