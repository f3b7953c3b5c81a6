"""The railway: bookings, which are changed, handed over and cancelled."""
