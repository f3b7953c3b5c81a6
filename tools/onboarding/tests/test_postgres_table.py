"""A database is opened by a URL whose password stays secret."""

import pytest

from statecast_onboarding.errors import UnreachableError
from statecast_onboarding.postgres_table import open_database


@pytest.mark.parametrize(
    "url",
    [
        "postgre://me:s3cret@127.0.0.1:1/shop",
        "postgres://me:s3cret%@127.0.0.1:1/shop",
        "postgres://me:s3cret s3cret@127.0.0.1:1/shop",
        "postgres://me:s3cret@[::1/shop",
        "postgres://me:x@s3cret@127.0.0.1:1/shop",
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UnreachableError, match="the URL is wrong") as refused:
        open_database(url)

    assert "s3cret" not in str(refused.value)
