"""English: coming by SSH, and the keys for it."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import ENDED
from gpuyard.words.language import Facts, Template

ENDED_STATES = frozenset(state.value for state in ENDED)


def _not_running(facts: Facts) -> str:
    if facts.get("what") == "env" and facts.get("state") == "paused":
        return "The environment {name} is stopped. Start it with: yard env start {name}"
    if facts.get("what") == "env" and facts.get("state") in ENDED_STATES:
        return "The environment {name} was removed. See what there is with: yard env ls"
    if facts.get("what") == "env":
        return "The environment {name} is not running[ ({state:noun})]. See why with: yard env show {name}"
    return "The job {name} is not running[ ({state:noun})], so there is nothing to enter."


def _no_forwarding(facts: Facts) -> str:
    match facts.get("what"):
        case "remote":
            return "Ports cannot be opened here for you (ssh -R)[: {target}]; forward the other way, with ssh -L."
        case "unix":
            return "Sockets in the file system cannot be forwarded[: {target}]; only ports of localhost can."
        case "tunnel":
            return "Network tunnels (ssh -w) are not possible here."
    return "Only ports of the environment's own localhost can be forwarded[, not {target}]; write localhost:PORT."


SSH_SENTENCES: Mapping[Code, Template] = {
    Code.NOT_RUNNING: _not_running,
    Code.WHICH_ENVIRONMENT: "Several of your environments run: {names:list}. Say which: ssh {user}+NAME@...",
    Code.NO_ENVIRONMENT: (
        "You have no running environment.[ Stopped are: {names:list}; start one with: yard env start NAME.]"
    ),
    Code.NO_FORWARDING: _no_forwarding,
    Code.NO_SFTP: (
        "There is no sftp-server inside, so files cannot be copied this way. Install openssh-sftp-server there, or "
        "ask an admin for the toolbox (yard toolbox build); with OpenSSH, scp -O works without it."
    ),
    Code.TOO_MANY_AT_ONCE: "Too many {what:noun} at once: at most {limit} are possible.",
    Code.LOGIN_OVER: "This login is over: the account, its password or its key has changed. Log in again.",
    Code.GATEWAY_ENDS: "The gateway is being restarted. Connect again in a moment; what runs inside goes on.",
}

SSH_PROBLEMS: Mapping[str, str] = {
    Problem.SSH_KEY: (
        "expected a public key on one line, like `ssh-ed25519 AAAA... you@laptop`; usually it is in "
        "~/.ssh/id_ed25519.pub"
    ),
    Problem.SSH_KEY_BROKEN: "the key is not complete; copy the whole line again",
    Problem.SSH_KEY_KIND: "keys of the kind {kind} are not taken; use one of {allowed:list}",
    Problem.SSH_KEY_OPTIONS: "the line begins with options; give the key alone, beginning with its kind",
    Problem.SSH_SEVERAL_KEYS: "there are several keys; add them one at a time",
    Problem.SSH_PRIVATE_KEY: (
        "this is a private key, and it must stay with you: it was not kept. Give the public one, whose file ends "
        "in .pub. If others may have seen the private one, make a new pair with: ssh-keygen -t ed25519"
    ),
    Problem.SSH_CERTIFICATE: "this is a certificate; give the public key itself",
    Problem.SSH_RSA_SHORT: (
        "an RSA key of {bits} bits is too short (at least {least}); make a new one with: ssh-keygen -t ed25519"
    ),
}

SSH_NOUNS: Mapping[str, str] = {
    "environment": "environment",
    "key": "SSH key",
    "key.list": "see SSH keys",
    "key.add": "add an SSH key",
    "key.remove": "remove an SSH key",
    "ssh.sessions": "SSH sessions",
    "ssh.connections": "SSH connections of one person",
    "ssh.forwards": "forwarded connections",
}
