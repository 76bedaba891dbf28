"""Amounts: what people write is read exactly, what is shown can be read again, and nonsense is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuyard.domain.resources import (
    GIB,
    KIB,
    MAX_CARDS_MILLI,
    MAX_CPU_MILLI,
    MAX_MEMORY,
    MAX_SECONDS,
    MIB,
    TIB,
    WHOLE_CARD,
    Cards,
    parse_bytes,
    parse_cards,
    parse_cpu,
    parse_duration,
    show_bytes,
    show_milli,
)

# Machines are noisy: how long an example takes says nothing.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

PARSERS: tuple[Callable[[str], float], ...] = (parse_bytes, parse_cpu, parse_cards, parse_duration)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("16G", 16 * GIB),
        ("16Gi", 16 * GIB),
        ("16gib", 16 * GIB),
        ("512MB", 512 * MIB),
        ("512 m", 512 * MIB),
        ("1.5t", 3 * TIB // 2),
        ("8k", 8 * KIB),
        ("1048576", MIB),
        (" 1B ", 1),
    ],
)
def test_memory_is_read_as_people_write_it(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(("text", "milli"), [("4", 4000), ("0.5", 500), ("500m", 500), ("0.001", 1), (" 2 ", 2000)])
def test_cores_are_read_as_people_write_them(text: str, milli: int) -> None:
    assert parse_cpu(text) == milli


@pytest.mark.parametrize(("text", "milli"), [("0", 0), ("1", 1000), ("8", 8000), ("0.5", 500), ("2.0", 2000)])
def test_cards_are_whole_or_a_share_of_one(text: str, milli: int) -> None:
    assert parse_cards(text) == milli


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5", 1.5), ("30m", 1800), ("2h30m", 9000), ("1d", 86400), ("1d 2h 3m 4s", 93784)],
)
def test_times_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


NONSENSE = [
    *("", " ", "x", "-1", "+", "1e400", "1e3", "nan", "inf", "NaN", "0x10", "1_000", "1,5", "1:30", "--", "٣", "１６"),
    *("9" * 40, "1" + " " * 100, " " * 65536, "1\n2", "1;2", "\x00", "None", "true", "1.5.5", ".5", "5.", "½"),
]


@pytest.mark.parametrize("text", NONSENSE, ids=[ascii(text)[:20] for text in NONSENSE])
@pytest.mark.parametrize("parse", PARSERS)
def test_nonsense_is_refused_by_every_parser(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, "0"),
        (parse_bytes, "1025T"),
        (parse_bytes, "16X"),
        (parse_bytes, "0.1"),
        (parse_cpu, "0"),
        (parse_cpu, "10001"),
        (parse_cpu, "0.0001"),
        (parse_cpu, "4 cores"),
        (parse_cards, "2.5"),
        (parse_cards, "100001"),
        (parse_cards, "0.0001"),
        (parse_duration, "0"),
        (parse_duration, "0s"),
        (parse_duration, "367d"),
        (parse_duration, "2h30"),
        (parse_duration, "5m2h"),
        (parse_duration, "1w"),
    ],
)
def test_amounts_out_of_bounds_are_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|cards are whole"):
        parse(text)


@unhurried
@given(st.text(max_size=40))
def test_any_text_is_read_within_bounds_or_refused_as_a_value(text: str) -> None:
    limits = zip(PARSERS, (MAX_MEMORY, MAX_CPU_MILLI, MAX_CARDS_MILLI, MAX_SECONDS), strict=True)
    for parse, most in limits:
        try:
            amount = parse(text)
        except ValueError:
            continue
        assert 0 <= amount <= most


@unhurried
@given(st.integers(1, MAX_CPU_MILLI))
def test_cores_shown_are_read_again(milli: int) -> None:
    assert parse_cpu(show_milli(milli)) == milli


@unhurried
@given(st.one_of(st.integers(0, WHOLE_CARD), st.integers(1, 100_000).map(lambda whole: whole * WHOLE_CARD)))
def test_cards_shown_are_read_again(milli: int) -> None:
    assert parse_cards(show_milli(milli)) == milli


@unhurried
@given(st.integers(1, MAX_MEMORY))
def test_memory_shown_is_read_again_to_within_a_twentieth(amount: int) -> None:
    assert abs(parse_bytes(show_bytes(amount)) - amount) <= amount / 20


@unhurried
@given(st.integers(1, 1024), st.sampled_from(["K", "M", "G", "T"]))
def test_whole_amounts_of_memory_are_shown_as_they_were_written(count: int, unit: str) -> None:
    shown = show_bytes(parse_bytes(f"{count}{unit}"))
    assert parse_bytes(shown) == parse_bytes(f"{count}{unit}")


@pytest.mark.parametrize("milli", [0, -1000, 1500, 1001])
def test_cards_that_cannot_be_given_out_cannot_be_made(milli: int) -> None:
    with pytest.raises(ValueError, match="cards"):
        Cards("nvidia", milli)
