"""A certificate of one's own, for this machine and every name below localhost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """The certificate and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = "subjectAltName=DNS:localhost,DNS:*.localhost,IP:127.0.0.1"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    made = ["-subj", f"/CN={name}", "-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run([openssl, "req", "-x509", *kind, *made], check=True, capture_output=True)
    return cert, key
