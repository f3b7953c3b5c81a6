"""Page tokens are sealed for callers, and opened by every edge that knows the secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ws_edge.auth.page_tokens import PageTokens
from ws_edge.errors import MalformedFrameError

OLD, NEW = "old-gateway-secret", "new-gateway-secret"


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_what_is_sealed_is_opened_by_any_edge_with_the_secret(token: str) -> None:
    assert PageTokens([NEW, OLD]).open(PageTokens([OLD]).seal(token)) == token
    assert PageTokens([OLD]).open(PageTokens([OLD, NEW]).seal(token)) == token


def test_the_first_page_and_the_last_have_no_token() -> None:
    assert (PageTokens([NEW]).seal(""), PageTokens([NEW]).open("")) == ("", "")


@given(st.text())
def test_what_no_edge_has_sealed_is_refused(sealed: str) -> None:
    if sealed:
        with pytest.raises(MalformedFrameError, match="next_page_token"):
            PageTokens([NEW]).open(sealed)


def test_a_token_that_was_changed_or_sealed_with_another_secret_is_refused() -> None:
    sealed = PageTokens([OLD]).seal("a-token-of-the-query-service")
    swapped = sealed[:30] + ("A" if sealed[30] != "A" else "B") + sealed[31:]

    for each, secret in ((swapped, OLD), (sealed[:-4], OLD), (sealed, NEW)):
        with pytest.raises(MalformedFrameError):
            PageTokens([secret]).open(each)
