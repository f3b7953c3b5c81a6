"""Random JSON, read into texts: each value is the one that was written, with all its digits."""

import json
from dataclasses import dataclass
from random import Random

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.json_texts import MALFORMED, read_json, read_map, text_fields

COUNT = 500
NAMES = ("a", "b", "c", "schema", "Ä")
TEXTS = ("", " a b ", 'q"\\', "\\", "\n\t\0", "ü€\U0001f600", "{", "]}", "1", "null")
NUMBERS = ("0", "-0", "1.50", "1e400", "-12345678901234567890.123456789012345678901", "7E-3", "9" * 1_100)


@dataclass(frozen=True)
class Number:
    """A number that is written with the digits of its text."""

    text: str


def written(value: object, chance: Random) -> str:
    """JSON of the value, with random spaces between its parts."""
    space = chance.choice(("", "", " ", "\n\t "))
    if isinstance(value, dict):
        parts = [
            f"{space}{written(name, chance)}{space}:{space}{written(each, chance)}" for name, each in value.items()
        ]
        return "{" + f"{space},".join(parts) + space + "}"
    if isinstance(value, list):
        return "[" + f"{space},{space}".join(written(each, chance) for each in value) + f"{space}]"
    return value.text if isinstance(value, Number) else json.dumps(value, ensure_ascii=chance.random() < 0.5)


def random_value(chance: Random, depth: int) -> object:
    kind = chance.randrange(6 if depth else 4)
    if kind == 4:
        return [random_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 5:
        return random_object(chance, depth - 1)
    return (chance.choice(TEXTS), Number(chance.choice(NUMBERS)), chance.random() < 0.5, None)[kind]


def random_object(chance: Random, depth: int) -> dict[str, object]:
    return {name: random_value(chance, depth) for name in chance.sample(NAMES, chance.randrange(len(NAMES)))}


def as_text(value: object) -> str | None:
    """Returns the text that stands for the value in a struct of texts; that of an object or an array has no spaces."""
    if value is None or isinstance(value, str):
        return value
    return compact(value)


def compact(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{compact(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return value.text if isinstance(value, Number) else json.dumps(value)


def same(text: str | None, value: object) -> bool:
    """Returns whether the text is that of the value; texts within it may be escaped in another way."""
    if not isinstance(value, dict | list):
        return text == as_text(value)
    assert text is not None
    unescaped = json.loads(text, parse_float=Number, parse_int=Number)
    return compact(unescaped) == compact(value) and "\n" not in text and "\t" not in text


def test_each_value_is_the_one_that_was_written(spark: SparkSession) -> None:
    chance = Random(7)
    objects = [random_object(chance, depth=3) for _ in range(COUNT)]
    frame = spark.createDataFrame([(written(each, chance),) for each in objects], "text string")

    both = {"fields": read_json(F.col("text"), text_fields(*NAMES)), "map": read_map(F.col("text"))}
    read = frame.withColumns(both).withColumn("names", F.map_keys("map.value"))

    for line, value in zip(read.collect(), objects, strict=True):
        assert line.fields[MALFORMED] is line.map[MALFORMED] is None
        assert [name for name in NAMES if not same(line.fields[name], value.get(name))] == []
        assert line.names == sorted(value, key=str.encode)
        assert all(same(text, value[name]) for name, text in line.map.value.items())


def test_a_cut_object_is_malformed_and_gives_no_value(spark: SparkSession) -> None:
    text = '{"a": [1, {"b": "x"}], "b": 2, "schema": {"c": null}}'
    frame = spark.createDataFrame([(text[:length],) for length in range(len(text))], "text string")

    read = frame.select("text", read_json(F.col("text"), text_fields(*NAMES)).alias("fields")).collect()

    assert [line.fields[MALFORMED] for line in read] == [line.text for line in read]
    assert {line.fields[name] for line in read for name in NAMES} == {None}
