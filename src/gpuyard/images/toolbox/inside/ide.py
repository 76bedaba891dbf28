"""Start VS Code: `python3 -I -m yard_inside.ide OPTIONS`.

It listens before it knows its own pages, and says 404 until then. So it listens under another name, and has its own
from the moment on at which it is well.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from .surroundings import settle

FIRST_SETTINGS = {
    "chat.disableAIFeatures": True,  # there is no such service here
    "extensions.autoCheckUpdates": False,
    "telemetry.telemetryLevel": "off",
    "workbench.startupEditor": "none",
}


HIDDEN = "ide.new"  # no longer than the name it stands for: addresses of sockets have little room
PATIENCE_SECONDS, LOOK_SECONDS, ANSWER_SECONDS = 600.0, 0.05, 10.0


def main() -> None:
    settle(os.environ, sys.prefix)
    options = sys.argv[1:]
    write_first_settings(options)
    node = os.path.join(sys.prefix, "bin", "node")
    entry = os.path.join(sys.prefix, "code-server", "node_modules", "code-server", "out", "node", "entry.js")
    os.execv(node, [node, entry, *show_when_well(options)])  # noqa: S606


def show_when_well(options: list[str]) -> list[str]:
    """The same, with the other name."""
    if "--socket" not in options[:-1]:
        return options
    at = options.index("--socket") + 1
    shown, hidden = options[at], os.path.join(os.path.dirname(options[at]), HIDDEN)
    editor = os.getpid()
    if child := os.fork():
        os.waitpid(child, 0)
        return [*options[:at], hidden, *options[at + 1 :]]
    try:
        if os.fork() == 0:  # its parent ends at once, so that the editor has no child it does not know
            rename_when_well(hidden, shown, editor)
    finally:
        os._exit(0)


def rename_when_well(hidden: str, shown: str, editor: int) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_well(hidden):
        if time.monotonic() > until or not os.path.exists(f"/proc/{editor}"):
            return
        time.sleep(LOOK_SECONDS)
    os.rename(hidden, shown)


def is_well(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ANSWER_SECONDS)
        try:
            asking.connect(address)
            asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return asking.recv(12) == b"HTTP/1.1 200"
        except OSError:
            return False


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
