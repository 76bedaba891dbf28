"""The settings file: what it says holds, what it cannot mean is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.settings import BadSettings, Settings, with_file

PLAIN = Settings(data=Path("/data"))


def test_what_the_file_says_holds() -> None:
    settings = with_file(PLAIN, 'refuse_images = true\nlog_limit = "64M"\nkeep_days = 30\nbackup_hour = 5\n')
    assert settings.refuse_images
    assert settings.log_limit_bytes == 64 << 20
    assert (settings.control.keep_days, settings.control.backup_hour) == (30.0, 5)
    assert isinstance(settings.control.backup_hour, int)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kep_days = 3", "did you mean keep_days"),
        ("frobnicate = 3", "known are"),
        ("keep_days = -1", "from 0 to 36500"),
        ("keep_days = true", "expected a number"),
        ("refuse_images = 1", "true or false"),
        ("log_limit = 'much'", "512M"),
        ("log_limit = ", "Invalid value"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        with_file(PLAIN, text)
