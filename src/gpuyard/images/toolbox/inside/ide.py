"""Start VS Code: `python3 -I -m yard_inside.ide OPTIONS`."""

from __future__ import annotations

import json
import os
import sys

from .surroundings import settle

FIRST_SETTINGS = {
    "chat.disableAIFeatures": True,  # there is no such service here
    "extensions.autoCheckUpdates": False,
    "telemetry.telemetryLevel": "off",
    "workbench.startupEditor": "none",
}


def main() -> None:
    settle(os.environ, sys.prefix)
    write_first_settings(sys.argv[1:])
    node = os.path.join(sys.prefix, "bin", "node")
    entry = os.path.join(sys.prefix, "code-server", "node_modules", "code-server", "out", "node", "entry.js")
    os.execv(node, [node, entry, *sys.argv[1:]])  # noqa: S606


def write_first_settings(options: list[str]) -> None:
    """For who comes the first time. From then on the settings are theirs."""
    folder = options[options.index("--user-data-dir") + 1] if "--user-data-dir" in options[:-1] else ""
    file = os.path.join(folder, "User", "settings.json")
    if not folder or os.path.lexists(file):
        return
    try:
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "x", encoding="utf-8") as settings:
            json.dump(FIRST_SETTINGS, settings, indent=4)
    except OSError as problem:  # a full disk, a closed folder: the editor starts all the same
        sys.stderr.write(f"no settings were written: {problem}\n")


if __name__ == "__main__":
    main()
