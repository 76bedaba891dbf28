"""Errors of the server's rooms met on this machine (`up`, `restore`), told in words. Needs the server part."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gpuyard.cli.failures import BAD_INPUT, FAILED, Refused
from gpuyard.cli.phrases import LANGUAGE
from gpuyard.domain.errors import BadInput, YardError


@contextlib.contextmanager
def domain_errors_in_words() -> Iterator[None]:
    from gpuyard.words import say as words_for

    try:
        yield
    except YardError as error:
        code = BAD_INPUT if isinstance(error, BadInput) else FAILED
        raise Refused(words_for(error.reason, "zh" if LANGUAGE == "zh" else "en"), code) from error
