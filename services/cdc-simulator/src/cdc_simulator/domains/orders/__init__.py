"""The shop: orders, from placed to delivered or cancelled."""
