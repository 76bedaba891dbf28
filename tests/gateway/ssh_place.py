"""A whole platform with somebody who comes by SSH: the server, its gateway and its engine as `yard up` starts them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from tests.cli.yard import wait_until
from tests.platforms import Platform


class Place:
    """A running platform, and a person with a key."""

    def __init__(self, owner: Platform) -> None:
        self.owner = owner
        owner.good("user", "create", "ann", "--group", "default", "--password-stdin", stdin="a long secret")
        token = owner.good("token", "create", "all", "--user", "ann", "--scope", "admin")
        self.ann = owner.as_user(token)
        self.key = owner.home / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)
        self.ann.good("key", "add", str(self.key) + ".pub")
        note = owner.data / "gateway.json"
        wait_until(note.exists)
        self.port = int(json.loads(note.read_text())["ssh_port"])
        public = (owner.data / "ssh_host_ed25519_key.pub").read_text()
        (owner.home / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")

    def options(self) -> list[str]:
        chosen = {
            "UserKnownHostsFile": str(self.key.with_name("known_hosts")),
            "IdentityFile": str(self.key),
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
        }
        return ["-F", "/dev/null", *(part for name, value in chosen.items() for part in ("-o", f"{name}={value}"))]

    def command(self, *arguments: str, place: str = "dev", options: Sequence[str] = ()) -> list[str]:
        return ["ssh", *options, *self.options(), "-p", str(self.port), f"ann+{place}@127.0.0.1", *arguments]

    def ssh(
        self, *arguments: str, place: str = "dev", options: Sequence[str] = (), stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return self.run(self.command(*arguments, place=place, options=options), stdin)

    def run(self, command: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, input=stdin)
