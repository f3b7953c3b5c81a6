"""Selecting: errors in an expression that only Spark detects, and which types can replace which."""

import pytest

from statecast_domains.errors import PipelineFileError
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch


@pytest.mark.parametrize(
    ("select", "problem"),
    [
        ({"city": "upper(lines)"}, "select.city: .*upper"),
        ({"item_quantity": "total_amount_cents"}, "select.item_quantity: is bigint, the field needs int"),
        ({"city": "regexp_replace(currency, '(', '')"}, r"select.city: '\(' in regexp_replace: Unclosed group"),
        ({"city": "array(currency)"}, "select.city: is array<string>, the field needs string"),
    ],
)
def test_what_only_spark_can_tell_is_told_of_the_key(
    shipped: PipelineOf, batch: OneBatch, select: dict[str, str], problem: str
) -> None:
    pipeline = shipped("masked-lines", select=select)

    with pytest.raises(PipelineFileError, match=f"masked-lines.yaml: {problem}"):
        batch.lines(pipeline, b"")
