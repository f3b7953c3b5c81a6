"""The tables and triggers of the order database; the one place that knows what is on disk.

`orders` is the source table. Triggers write each change of it to `change_log`, within the transaction that makes it, so
the log can neither miss a change nor hold one that did not happen. SQLite's AUTOINCREMENT gives log sequence numbers
without gaps, and never one twice, even after the log was pruned.
"""

FORMAT_VERSION = 1

TABLES = """
CREATE TABLE orders (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id TEXT GENERATED ALWAYS AS (printf('order-%06d', number)) VIRTUAL,
    customer_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('placed', 'paid', 'packed', 'shipped', 'delivered', 'cancelled')),
    items TEXT NOT NULL CHECK (json_array_length(items) > 0), -- [[item_id, quantity, unit_price_cents], ...]
    total_cents INTEGER NOT NULL,
    currency TEXT NOT NULL,
    placed_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL,
    estimated_delivery TEXT NOT NULL,
    tracking_number TEXT NOT NULL
);
CREATE TABLE change_log (
    lsn INTEGER PRIMARY KEY AUTOINCREMENT,
    transaction_id TEXT NOT NULL,
    commit_time_us INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    before TEXT, -- the row as a JSON array in the order of the table's columns, without order_id; null for an insert
    after TEXT   -- likewise; null for a delete
);
CREATE TABLE incarnation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,             -- unix milliseconds when the database was made; higher for a later one
    seed INTEGER NOT NULL,
    orders INTEGER NOT NULL,
    customers INTEGER NOT NULL,
    items INTEGER NOT NULL,
    transaction_id TEXT NOT NULL,       -- of the transaction that is open, or was last
    commit_time_us INTEGER NOT NULL,    -- likewise; never goes backwards
    acknowledged_lsn INTEGER NOT NULL   -- Kafka has every change up to here
);
"""

_COLUMNS = (
    "number",
    "customer_id",
    "status",
    "json({row}.items)",
    "total_cents",
    "currency",
    "placed_at_us",
    "updated_at_us",
    "estimated_delivery",
    "tracking_number",
)


def _image(row: str) -> str:
    fields = [column.format(row=row) if "{" in column else f"{row}.{column}" for column in _COLUMNS]
    return f"json_array({', '.join(fields)})"


def _trigger(event: str, before: str, after: str) -> str:
    return f"""
CREATE TRIGGER log_{event} AFTER {event} ON orders BEGIN
    INSERT INTO change_log (transaction_id, commit_time_us, snapshot, before, after)
    SELECT transaction_id, commit_time_us, 0, {before}, {after} FROM incarnation;
END;
"""  # noqa: S608  built from the constants of this file


TRIGGERS = (
    _trigger("INSERT", "NULL", _image("NEW"))
    + _trigger("UPDATE", _image("OLD"), _image("NEW"))
    + _trigger("DELETE", _image("OLD"), "NULL")
)

TAKE_SNAPSHOT = f"""
INSERT INTO change_log (transaction_id, commit_time_us, snapshot, before, after)
SELECT transaction_id, commit_time_us, 1, NULL, {_image("orders")} FROM orders, incarnation ORDER BY number
"""  # noqa: S608  as above
