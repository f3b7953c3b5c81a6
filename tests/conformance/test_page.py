"""The page of sources is made from the cases."""

from kit.case import read_cases
from kit.page import GROUPS, PAGE, answer, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_cases()), "make reference writes it anew"


def test_each_case_says_how_the_product_answers() -> None:
    cases = read_cases()

    assert {case.group for case in cases} == set(GROUPS)
    assert [case.name for case in cases if not answer(case)] == []
