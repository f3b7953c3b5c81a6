"""Classifies a record of Debezium's by its form: a change, a record that is known to be no row, or neither.

`envelope` is the outermost object of a record's JSON, or that in `payload` beside a `schema`, with a field for each
name that an envelope has.
"""

from collections.abc import Collection
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.json_texts import MALFORMED, half_character_problem
from stream_processor.steps.keys import TRUNCATE

CONNECTORS = ("postgresql", "mysql", "mariadb")
"""The databases from which changes are read, as `source.connector` names them."""
OPERATIONS = {
    "c": "OPERATION_CREATE",
    "u": "OPERATION_UPDATE",
    "d": "OPERATION_DELETE",
    "r": "OPERATION_SNAPSHOT",
    "t": TRUNCATE,
}
NO_OPERATION = f"op is none of {', '.join(OPERATIONS)}: "
NO_CHANGE = "op is not set: this is no change by Debezium"
UNWRAPPED = (
    "op is not set: the record is a row alone, without its place in the log; take the transform ExtractNewRecordState "
    "out of the connector"
)
MESSAGE = "a message in the database's log"
WATERMARK = "a row of the connector's signal table, a watermark of an incremental snapshot"
SIGNAL_COLUMNS = ("data", "id", "type")
MAX_NAME = 40
"""Most characters of a name in a record that a reason shows."""
MAX_NAMES = 10
"""Most names that a reason shows."""


@dataclass(frozen=True)
class Form:
    """The names in a record of one kind, and those that it may have beside them; `key` has the names in its key."""

    kind: str
    names: Collection[str]
    more: Collection[str] = ()
    key: Collection[str] | None = None


OTHER_FORMS = (
    Form("a heartbeat of the connector", ["ts_ms"], ["ts_us", "ts_ns"], key=["serverName"]),
    Form(
        "the mark of a transaction's begin or end",
        ["status", "id", "ts_ms"],
        ["event_count", "data_collections", "ts_us", "ts_ns"],
        key=["id"],
    ),
    Form(
        "a change of a table's definition",
        ["source", "databaseName", "ddl"],
        ["ts_ms", "ts_us", "ts_ns", "schemaName", "tableChanges"],
    ),
    Form(
        "a notification of the connector",
        ["id", "aggregate_type", "type"],
        ["additional_data", "timestamp"],
        key=["id"],
    ),
)
"""Records without `op` that Debezium writes beside changes; a router may put them into a table's topic."""


def names_of(value: Column, envelope: Column) -> Column:
    """Returns the names in the object that should be an envelope and has no `op`; null for an envelope."""
    inner = F.json_object_keys(F.get_json_object(value, "$.payload"))
    return F.when(envelope.getField("op").isNull(), F.coalesce(inner, F.json_object_keys(value)))


def names_of_key(key: Column, columns: Column) -> Column:
    """Returns the sorted names in the record's key: `columns` of JSON, or those in Connect's text of a struct."""
    struct = F.when(key.startswith("Struct{"), F.array_sort(F.regexp_extract_all(key, F.lit(r"(\w+)="), F.lit(1))))
    return F.coalesce(columns, struct)


def passed_over(envelope: Column, names: Column, key_names: Column) -> Column:
    """Finds why the record is known to be no row; null where it is not known.

    `names` are those of names_of, `key_names` those of names_of_key.
    """
    op = envelope.getField("op")
    rows = F.coalesce(envelope.getField("after"), envelope.getField("before"))
    return F.coalesce(
        _other_form(names, key_names),
        F.when((op == "m") & envelope.getField("source").isNotNull(), MESSAGE),
        F.when(
            rows.contains('"snapshot-window-') & (F.array_sort(F.json_object_keys(rows)) == _array(SIGNAL_COLUMNS)),
            WATERMARK,
        ),
    )


def _other_form(names: Column, key_names: Column) -> Column:
    kinds = []
    for form in OTHER_FORMS:
        has_form = F.forall(_array(form.names), lambda name: F.array_contains(names, name)) & (
            F.size(F.array_except(names, _array([*form.names, *form.more]))) == 0
        )
        if form.key is not None:
            has_form &= key_names == _array(form.key)
        kinds.append(F.when(has_form, form.kind))
    # An envelope has no names here; Spark would look through them for each form all the same.
    return F.when(names.isNotNull(), F.coalesce(*kinds))


def form_problem(value: Column, envelope: Column, names: Column, connector: Column, row: Descriptor) -> Column:
    """Finds why the record is not a change that is read, as far as its form tells."""
    op = envelope.getField("op")
    other = F.when(~connector.isin(*CONNECTORS), F.left(connector, F.lit(MAX_NAME)))
    return F.coalesce(
        F.when(value.isNull(), "the value is null"),
        F.when(~F.is_valid_utf8(value), "the value is no UTF-8"),
        F.when(
            ~F.ltrim(value).startswith("{") | envelope.isNull() | envelope.getField(MALFORMED).isNotNull(),
            "the value is no JSON object",
        ),
        half_character_problem(value),
        F.concat(
            F.lit("changes of "), other, F.lit(f" are not read; {', '.join(CONNECTORS[:-1])} and {CONNECTORS[-1]} are")
        ),
        F.when(op.isNull(), _without_operation(names, envelope, row)),
        F.when(~op.isin(*OPERATIONS), F.concat(F.lit(NO_OPERATION), F.left(op, F.lit(MAX_NAME)))),
    )


def _without_operation(names: Column, envelope: Column, row: Descriptor) -> Column:
    part_of_envelope = F.coalesce(*[envelope.getField(name) for name in ("before", "after", "source")])
    has_columns = F.arrays_overlap(names, _array(row.fields_by_name))
    has = F.concat(F.lit(f"{NO_CHANGE}, the record has "), shown(names))
    return F.when(part_of_envelope.isNull() & has_columns, UNWRAPPED).when(F.size(names) > 0, has).otherwise(NO_CHANGE)


def column_names(text: Column, texts: Column, row: Descriptor) -> Column:
    """Returns the names in the row's JSON; null for a row with a value for each field.

    The names of such a row need not be read. `text` is the JSON, `texts` was read of it.
    """
    all_set = F.lit(True)
    for name in row.fields_by_name:
        all_set &= texts.getField(name).isNotNull()
    return F.when(text.isNotNull() & ~all_set, F.json_object_keys(text))


def columns_problem(side: str, names: Column, row: Descriptor) -> Column:
    """Finds why the columns are not those of the row: they lack all of its names, or have one in other letters.

    A single column may be missing: a database need not publish each. `names` are those of column_names.
    """
    fields = list(row.fields_by_name)
    missing = F.array_except(_array(fields), names)
    folded = F.transform(missing, F.lower)
    alike = F.filter(
        names, lambda name: F.array_contains(folded, F.lower(name)) & ~F.array_contains(_array(fields), name)
    )
    case = F.concat(F.lit(f"{side} has "), shown(alike), F.lit(f", {row.full_name} has it in other letters"))
    has = F.concat(F.lit(f"{side} has no column of {row.full_name}, but "), shown(names))
    none = F.when(F.size(names) > 0, has).otherwise(f"{side} has no columns")
    return F.when(F.size(alike) > 0, case).when(F.size(missing) == len(fields), none)


def shown(names: Column) -> Column:
    """Returns the first of the names, as a reason shows them."""
    shortened = F.transform(F.slice(names, 1, MAX_NAMES), lambda name: F.left(name, F.lit(MAX_NAME)))
    return F.concat(F.array_join(shortened, ", "), F.when(F.size(names) > MAX_NAMES, ", …").otherwise(""))


def _array(names: Collection[str]) -> Column:
    return F.array(*[F.lit(name) for name in names])
