"""Where packages come from, as the admin sets it for all workloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.images.mirrors import environment
from gpuyard.settings import BadSettings, Settings, with_file


def test_nothing_set_leaves_images_as_they_are() -> None:
    assert environment(Settings(Path("/data"))) == {}


def test_mirrors_become_variables_that_pip_and_conda_read() -> None:
    text = (
        'pip_index_url = "https://mirror.example/simple"\n'
        'pip_trusted_host = "mirror.example"\n'
        'conda_channels = ["https://mirror.example/conda/main", "conda-forge"]\n'
    )
    assert environment(with_file(Settings(Path("/data")), text)) == {
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "PIP_TRUSTED_HOST": "mirror.example",
        "CONDA_CHANNELS": "https://mirror.example/conda/main,conda-forge",
        "CONDA_DEFAULT_CHANNELS": "https://mirror.example/conda/main",
    }


@pytest.mark.parametrize(
    "line",
    [
        'pip_index_url = "mirror"',
        'pip_trusted_host = "https://m/"',
        'conda_channels = "one"',
        'conda_channels = ["a,b"]',
    ],
)
def test_what_cannot_be_meant_is_refused(line: str) -> None:
    with pytest.raises(BadSettings):
        with_file(Settings(Path("/data")), line)
