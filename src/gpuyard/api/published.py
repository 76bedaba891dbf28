"""Prints the OpenAPI description, for those who make clients from it: `python -m gpuyard.api.published`."""

from __future__ import annotations

import json
import sys

from gpuyard import __version__
from gpuyard.api.app import described_app


def main() -> None:
    json.dump(described_app(__version__).openapi(), sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
