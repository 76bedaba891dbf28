"""Addresses are read as the library reads them, most of them without it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.sdk.address import Address, split_address

LETTERS = st.sampled_from("ab1.-:/@[]?#% AZé0")


def by_the_library(url: str) -> Address | None:
    try:
        parts = urlsplit(url)
        return Address(parts.scheme, parts.hostname or "", parts.port)
    except ValueError:
        return None


def by_us(url: str) -> Address | None:
    try:
        return split_address(url)
    except ValueError:
        return None


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:8470", "https://Yard.Example", "HTTP://h:1/", "http://h:65535/a:b@c?d#e", "http://h"),
        *(
            "http://h:",
            "http://h:65536",
            "http://h:-1",
            "http://h: 1",
            "http://h:٣",
            "http://h:port",
            "http://h:000080",
        ),
        *("http://[::1]:8470", "http://[::1", "http://u:p@h:1", "http://h?x/y", "http://h#x:1", "://h", "h:1", ""),
    ],
)
def test_an_address_is_taken_apart_as_the_library_does(url: str) -> None:
    assert by_us(url) == by_the_library(url)


@settings(deadline=None)
@given(st.text(LETTERS, max_size=12))
def test_so_is_anything_that_could_be_one(rest: str) -> None:
    assert by_us(f"http://{rest}") == by_the_library(f"http://{rest}")
