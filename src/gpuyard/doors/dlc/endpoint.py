"""From the endpoint, as people have it in their notes, to the address of the server.

A host without a scheme is spoken to with https: a password is never sent unprotected because something was left out.
Only this machine itself (localhost, 127.0.0.1) is spoken to with http, and what `--protocol http` or `http://` names.
"""

from __future__ import annotations

import re

from gpuyard.doors.dlc.saying import Failed
from gpuyard.sdk.errors import YardApiError
from gpuyard.sdk.finding import clean_url, safe_url

_IN_NO_ADDRESS = re.compile(r"[^!-~]|[@?#]")
PROTOCOLS = ("http", "https")


def address(endpoint: str, protocol: str = "") -> str:
    """Raises Failed when it cannot be an address."""
    if protocol and protocol not in PROTOCOLS:
        raise Failed(f'invalid argument "{protocol}" for "--protocol" flag: expected http or https')
    if _IN_NO_ADDRESS.search(endpoint):
        raise Failed(f'invalid endpoint "{endpoint}"')
    try:
        if protocol and "://" not in endpoint:
            return clean_url(f"{protocol}://{endpoint}")
        return safe_url(endpoint)
    except YardApiError as problem:
        raise Failed(f'invalid endpoint "{endpoint}"') from problem
