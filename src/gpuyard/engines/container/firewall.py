"""What workloads may reach over the network: themselves, names and the world; not each other, not this machine, not
what else it hosts.

Bridges of ours all begin with `yard`, so a handful of rules holds for every one there will ever be.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence

log = logging.getLogger(__name__)

BRIDGES = "yard+"
FORWARD, INPUT = "YARD-FORWARD", "YARD-INPUT"
TABLE = "mangle"  # asked before `filter`, where docker and podman put what they let through before everything else
_SECONDS = 20.0
# Where clouds tell a machine's secrets to whoever asks from it.
_OF_CLOUDS = (
    "169.254.0.0/16",  # AWS, Google, Azure, Huawei, Tencent, Oracle, OpenStack
    "100.100.100.200/32",  # Alibaba
    "100.96.0.96/32",  # Volcengine
    "168.63.129.16/32",  # Azure's other one
    "192.0.0.192/32",  # Oracle's older one
)

# Where others on this machine have their containers and virtual machines: Docker, podman, Kubernetes, libvirt, LXC.
_OF_OTHERS = (
    *("docker+", "br-+", "podman+", "cni+", "flannel+", "cali+", "cilium+"),
    *("virbr+", "vnet+", "lxcbr+", "lxdbr+", "incusbr+"),
)

_OF_ITS_OWN_BRIDGE = ("--dst-type", "LOCAL", "--limit-iface-in")

Rule = tuple[str, ...]
Chains = dict[str, list[str]]


def rules(denied: Sequence[str] = ()) -> dict[str, list[Rule]]:
    """By chain, in order. Answers to what a workload asked itself come back; nothing comes in unasked. `denied`: what
    an admin keeps from them besides."""
    return {
        FORWARD: [
            ("-m", "physdev", "--physdev-is-bridged", "-j", "RETURN"),  # inside one bridge, which is one workload
            *(("-i", BRIDGES, "-d", address, "-j", "DROP") for address in dict.fromkeys((*_OF_CLOUDS, *denied))),
            ("-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "RETURN"),
            *(("-i", BRIDGES, "-o", bridges, "-j", "DROP") for bridges in _OF_OTHERS),
            ("-o", BRIDGES, "-j", "DROP"),
        ],
        INPUT: [
            ("-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "RETURN"),
            *(
                (*("-p", kind, "--dport", "53", "-m", "addrtype"), *_OF_ITS_OWN_BRIDGE, "-j", "RETURN")
                for kind in ("udp", "tcp")
            ),
            ("-j", "DROP"),
        ],
    }


def rules_v6() -> dict[str, list[Rule]]:
    """Our networks have no IPv6; the addresses that every link has by itself lead nowhere."""
    return {FORWARD: [("-j", "DROP")], INPUT: [("-j", "DROP")]}


_JUMPS: list[tuple[str, Rule]] = [
    ("FORWARD", ("-o", BRIDGES, "-j", FORWARD)),
    ("FORWARD", ("-i", BRIDGES, "-j", FORWARD)),
    ("INPUT", ("-i", BRIDGES, "-j", INPUT)),
]


class FirewallProblem(Exception):
    """The rules are not in place, so no workload may get a network."""


class Firewall:
    def __init__(self, denied: Sequence[str] = ()) -> None:
        self._denied = tuple(network for network in denied if ":" not in network)  # of IPv6 they have nothing anyway
        self._lock = threading.Lock()
        self._written: dict[str, Chains] = {}  # by program: our chains as it shows them

    def ensure(self) -> None:
        """The rules are in place, whole and first. The engine or an admin may have changed the tables since: looking
        costs one call of each program, and only what is not as it was is written."""
        with self._lock:
            for program, wanted in _tables(self._denied):
                written = self._written.get(program)
                if written is not None and _stands(program, written):
                    continue
                if written is not None:
                    log.warning("somebody changed the firewall: the rules that keep workloads apart are put back")
                _write(program, wanted)
                self._written[program] = _ours(_chains(program))


def _tables(denied: Sequence[str]) -> list[tuple[str, dict[str, list[Rule]]]]:
    program = shutil.which("iptables", path=_search_path())
    if program is None:
        raise FirewallProblem("iptables is not installed, so that workloads could not be kept apart")
    tables = [(program, rules(denied))]
    if os.path.isdir("/proc/sys/net/ipv6"):
        program_v6 = shutil.which("ip6tables", path=_search_path())
        if program_v6 is None:
            raise FirewallProblem("ip6tables is not installed, so that workloads could not be kept apart")
        tables.append((program_v6, rules_v6()))
    return tables


def _search_path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _stands(program: str, written: Chains) -> bool:
    there = _chains(program)
    return _ours(there) == written and _leads_to_ours(there)


def _leads_to_ours(there: Chains) -> bool:
    """Each table begins with our jumps. Podman puts its own isolation before them, which lets nobody through."""
    for chain in ("FORWARD", "INPUT"):
        wanted = [" ".join(rule) for name, rule in _JUMPS if name == chain]
        listed = [rule for rule in there.get(chain, ()) if not rule.startswith("-j NETAVARK_ISOLATION")]
        if sorted(listed[: len(wanted)]) != sorted(wanted):
            return False
    return True


def _ours(there: Chains) -> Chains:
    return {chain: there.get(chain, []) for chain in (FORWARD, INPUT)}


def _write(program: str, wanted: dict[str, list[Rule]]) -> None:
    """The chains in one stroke, so that no moment is without rules; then the way into them, if it is not there."""
    try:
        _restore(program, wanted)
    except FirewallProblem:
        # Without the module that knows bridges nothing inside one passes these tables, and its rule is not needed.
        _restore(program, {chain: [rule for rule in some if "physdev" not in rule] for chain, some in wanted.items()})
    if _leads_to_ours(_chains(program)):
        return
    for chain, rule in _JUMPS:
        _run(program, "-t", TABLE, "-I", chain, "1", *rule)
    for chain, rule in _JUMPS:
        while _count(program, chain, rule) > 1:
            _run(program, "-t", TABLE, "-D", chain, str(_last(program, chain, rule)))


def _restore(program: str, wanted: dict[str, list[Rule]]) -> None:
    lines = [f"*{TABLE}", *(f":{chain} - [0:0]" for chain in wanted)]
    lines += [f"-A {chain} {' '.join(rule)}" for chain, some in wanted.items() for rule in some]
    _run(f"{program}-restore", "--noflush", text="\n".join([*lines, "COMMIT", ""]))


def _count(program: str, chain: str, rule: Rule) -> int:
    return _chains(program).get(chain, []).count(" ".join(rule))


def _last(program: str, chain: str, rule: Rule) -> int:
    """The number, from 1, of the last such rule of the chain."""
    listed = _chains(program)[chain]
    return len(listed) - listed[::-1].index(" ".join(rule))


def _chains(program: str) -> Chains:
    """All rules there are now, in order."""
    found: Chains = {}
    for line in _run(program, "-t", TABLE, "-S").splitlines():
        kind, chain, rule = (*line.split(" ", 2), "")[:3]
        if kind == "-A":
            found.setdefault(chain, []).append(rule)
    return found


def _run(program: str, *words: str, text: str = "") -> str:
    command = [program, "-w", "10", *words]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        raise FirewallProblem(f"{program} failed: {problem}") from problem
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise FirewallProblem(f"{os.path.basename(program)} {' '.join(words)}: {said}")
    return done.stdout.decode("utf-8", "replace")
