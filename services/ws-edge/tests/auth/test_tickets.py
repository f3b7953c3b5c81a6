"""A ticket renews the access of its own consumer, for a short time, at every edge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.ws_edge.edge import Clock
from ws_edge.auth.gateway import Caller, Credential
from ws_edge.auth.tickets import PAGE_TOKENS, TICKETS, Seal, Tickets
from ws_edge.errors import TicketRefusedError
from ws_edge.model.authorization import Consumer

ALICE = Consumer("customer-0001", "alice", False)
CALLER = Caller(ALICE, Credential(5000.0, 900.0))


def test_an_edge_redeems_a_ticket_of_another_edge(clock: Clock) -> None:
    ticket = Tickets(["the-secret"], clock, 60.0).issue(CALLER)

    assert Tickets(["the-secret"], clock, 60.0).redeem(ticket, ALICE) == CALLER


def test_a_credential_without_an_expiry_has_none_after_redeeming(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)

    assert tickets.redeem(tickets.issue(Caller(ALICE)), ALICE).credential == Credential()


def test_tickets_of_all_secrets_are_valid_while_secrets_are_rotated(clock: Clock) -> None:
    old, both, new = (Tickets(secrets, clock, 60.0) for secrets in (["old"], ["new", "old"], ["new"]))

    assert both.redeem(old.issue(CALLER), ALICE) == CALLER
    assert new.redeem(both.issue(CALLER), ALICE) == CALLER
    with pytest.raises(TicketRefusedError, match="not one of ours"):
        new.redeem(old.issue(CALLER), ALICE)


@pytest.mark.parametrize(
    "consumer", [Consumer("customer-0002", "bob", False), Consumer("customer-0001", "alice", True)]
)
def test_a_ticket_of_another_consumer_or_of_other_groups_is_refused(clock: Clock, consumer: Consumer) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)

    with pytest.raises(TicketRefusedError, match="another consumer"):
        tickets.redeem(tickets.issue(CALLER), consumer)


def test_a_ticket_is_valid_for_a_short_time(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)
    early, late = tickets.issue(CALLER), tickets.issue(CALLER)
    clock.now += 59.0
    tickets.redeem(early, ALICE)
    clock.now += 1.0

    with pytest.raises(TicketRefusedError, match="too old"):
        tickets.redeem(late, ALICE)


def test_an_edge_redeems_a_ticket_once_however_it_is_spelled(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)
    ticket, other = tickets.issue(CALLER), tickets.issue(CALLER)
    tickets.redeem(ticket, ALICE)
    clock.now += 30.0

    for spelling, reason in ((ticket, "used before"), (f"!!!!{ticket}", "used before")):
        with pytest.raises(TicketRefusedError, match=reason):
            tickets.redeem(spelling)
    assert tickets.redeem(other, ALICE) == CALLER


def test_a_ticket_that_was_refused_is_not_used_up(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)
    ticket = tickets.issue(CALLER)
    with pytest.raises(TicketRefusedError, match="another consumer"):
        tickets.redeem(ticket, Consumer("customer-0002", "bob", False))

    assert tickets.redeem(ticket, ALICE) == CALLER


def test_used_tickets_are_forgotten_once_they_are_too_old(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)
    for _ in range(1000):
        tickets.redeem(tickets.issue(CALLER))
        clock.now += 1.0

    assert len(tickets._used) <= 61


def test_a_ticket_does_not_outlive_the_credential_behind_it(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 3600.0)
    ticket = tickets.issue(Caller(ALICE, Credential(clock.now + 5.0)))
    clock.now += 5.0

    with pytest.raises(TicketRefusedError, match="has expired"):
        tickets.redeem(ticket, ALICE)


def test_forged_tickets_are_refused(clock: Clock) -> None:
    tickets = Tickets(["the-secret"], clock, 60.0)
    ticket = tickets.issue(CALLER)
    changed = ticket[:60] + ("A" if ticket[60] != "A" else "B") + ticket[61:]
    page_token = Seal(["the-secret"], PAGE_TOKENS).seal("a")
    for forged in ("", ".", ticket[:-4], changed, page_token, "ü.ü", "\ud800", "a" * 5000):
        with pytest.raises(TicketRefusedError, match="not one of ours"):
            tickets.redeem(forged, ALICE)


@given(st.text(), st.text())
def test_a_seal_is_opened_by_all_who_know_its_secret_and_by_nobody_else(text: str, other: str) -> None:
    text = text.encode(errors="replace").decode()
    old, both, new = (Seal(secrets, TICKETS) for secrets in (["old"], ["new", "old"], ["new"]))

    assert both.open(old.seal(text)) == new.open(both.seal(text)) == text
    assert new.open(old.seal(text)) is new.open(other) is None
    assert "=" not in new.seal(text)


def test_a_ticket_of_the_last_release_is_redeemed(clock: Clock) -> None:
    """If this fails, the form has changed: give TICKETS another version (docs/compatibility.md)."""
    ticket = (
        "gAAAAABrCZzfO9kK4e4PctNnNtZgYsfud8jPtLXv8Xsp0Q3DDTmm3D9qUWtjDZFweRcJQ18RlaWkK0r-1gouYyLGe50QXjPNm6m6"
        "Dy0A11iXkROKdSb03ELoluKnhNdnNjIs1mFSocg5oQsPJcti51IL7rMkBzHnlJ11xVPX10hCxHk84Y077d4Zi7GVxhth-CeeRZLZ"
        "7ttK5lL0aRPKTkg5SrePsYdRdDylAzDPfmLGjZHcVy64UTc"
    )

    assert Tickets(["the-secret"], clock, 60.0).redeem(ticket) == CALLER


def test_a_page_token_that_the_last_release_sealed_is_opened() -> None:
    """If this fails, the form has changed: give PAGE_TOKENS another version (docs/compatibility.md)."""
    sealed = "gAAAAABrCZzfmLLI8_h-tzt0kdKywO6OLXvMPoGwiLY72oyCnRii24PhK48qHMwCbL4HooZxcOtBTgCy7BbkNAS-o_V_7X7lnw"

    assert Seal(["the-secret"], PAGE_TOKENS).open(sealed) == "a-token"


def test_a_ticket_of_a_newer_version_is_refused(clock: Clock) -> None:
    ticket = Seal(["the-secret"], TICKETS.replace(b"version 2", b"version 3")).seal("{}")

    with pytest.raises(TicketRefusedError, match=r"not one of ours: send the whole ticket from POST"):
        Tickets(["the-secret"], clock, 60.0).redeem(ticket)
