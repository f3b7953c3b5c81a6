"""Names of tables, as people write them, as SQL takes them, and as Debezium makes topics of them."""

import re

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def split_name(name: str) -> tuple[str, str]:
    """Returns schema and table; the schema is `public` where the name has none."""
    schema, _, table = name.rpartition(".")
    return schema or "public", table


def topic_of(*parts: str) -> str:
    """Returns Debezium's topic, with `_` for characters that no topic's name has. `parts`: prefix, schema, table."""
    return re.sub(r"[^a-zA-Z0-9._-]", "_", ".".join(parts))


def sql_name(name: str) -> str:
    """Returns schema and table as SQL takes them."""
    return ".".join(map(sql_identifier, split_name(name)))


def sql_identifier(name: str) -> str:
    """Returns a name as SQL takes it: in quotes where it has capitals or other signs."""
    return name if _PLAIN.fullmatch(name) else '"{}"'.format(name.replace('"', '""'))
