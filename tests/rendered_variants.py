"""Variants of an investigation as reports, and what a browser would find in the page."""

from __future__ import annotations

from collections import Counter
from functools import cache
from html.parser import HTMLParser

import pytest
from investigation_variants import (
    all_variants,
)

from causeline import reports

VARIANTS = all_variants()


EACH_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


@cache
def page_of(variant: str) -> str:
    """The HTML page of a variant, rendered once for all tests that only read it."""
    return reports.render(VARIANTS[variant], "html")


def rendered(variant: str, format: str) -> str:
    return page_of(variant) if format == "html" else reports.render(VARIANTS[variant], format)


class Page(HTMLParser):
    """What a browser would find: tags, ids, link targets, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.targets.append((value or "")[1:])

    def handle_data(self, data: str) -> None:
        self.text += data
