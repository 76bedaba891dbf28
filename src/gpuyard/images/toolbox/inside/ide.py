"""Start VS Code: `python3 -I -m yard_inside.ide OPTIONS`."""

from __future__ import annotations

import os
import sys

from .surroundings import settle


def main() -> None:
    settle(os.environ, sys.prefix)
    node = os.path.join(sys.prefix, "bin", "node")
    entry = os.path.join(sys.prefix, "code-server", "node_modules", "code-server", "out", "node", "entry.js")
    os.execv(node, [node, entry, *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
