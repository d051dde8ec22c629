"""Tempers: Bayes factors of a family of signs to a power, folded into leak and grades."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causeline.engine.rules import KnowledgeBase
from causeline.knowledge.loader import Library, read_library

T = 0.7


@pytest.fixture(scope="module")
def library() -> Library:
    return read_library()


@pytest.fixture(scope="module")
def graded(library: Library) -> KnowledgeBase:
    return library.knowledge_base(tempers={})


@pytest.fixture(scope="module")
def tempered(library: Library) -> KnowledgeBase:
    return library.knowledge_base(dict.fromkeys(library.sign_families.values(), T))


def cells(knowledge: KnowledgeBase) -> Iterator[tuple[str, str, int, float, float]]:
    """Driver, sign, level, grade and leak of every cell."""
    for name, driver in (*knowledge.causes.items(), *knowledge.mechanisms.items()):
        for sign, link in driver.signs.items():
            leak = knowledge.signs[sign].leak.by_level
            for level, (grade, innocent) in enumerate(zip(link.by_level, leak, strict=True)):
                yield name, sign, level, grade, innocent


def test_presence_counts_to_the_power_of_the_temper(graded: KnowledgeBase, tempered: KnowledgeBase) -> None:
    for before, after in zip(cells(graded), cells(tempered), strict=True):
        if before[4] > 0 and before[2] == 0:
            assert after[3] / after[4] == pytest.approx((before[3] / before[4]) ** T), before


def test_absence_counts_so_for_the_cause_that_raises_a_sign_most(
    graded: KnowledgeBase, tempered: KnowledgeBase
) -> None:
    compared = 0
    for sign in graded.signs:
        mine = [pair for pair in zip(cells(graded), cells(tempered), strict=True) if pair[0][1:3] == (sign, 0)]
        before, after = max(mine, key=lambda pair: pair[0][3])
        if before[3] > before[4] > 0:
            compared += 1
            assert (1 - after[3]) / (1 - after[4]) == pytest.approx(((1 - before[3]) / (1 - before[4])) ** T), sign
    assert compared > 30


def test_what_raises_a_sign_still_does(graded: KnowledgeBase, tempered: KnowledgeBase) -> None:
    for before, after in zip(cells(graded), cells(tempered), strict=True):
        assert (before[3] > before[4]) == (after[3] > after[4]), before
        assert 0 <= after[3] <= 1 and 0 <= after[4] < 1


def test_a_temper_of_one_changes_nothing(library: Library, graded: KnowledgeBase) -> None:
    assert library.knowledge_base(dict.fromkeys(library.sign_families.values(), 1.0)) == graded


def test_only_the_named_family_is_tempered(library: Library, graded: KnowledgeBase) -> None:
    one = library.knowledge_base({"queue": T})
    changed = {sign for sign in graded.signs if one.signs[sign] != graded.signs[sign]}
    assert changed and {library.sign_families[sign] for sign in changed} == {"queue"}
