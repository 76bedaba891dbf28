"""Two hostile workloads against each other and against this machine over the network; and one with itself."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engines.containers import UID, ContainerYard
from tests.engines.places import replica

from gpuyard.domain.people import BLOCK
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container import firewall
from gpuyard.engines.container.engine import Options
from gpuyard.engines.container.networks import NoRoom, free_subnet, routes
from gpuyard.images.toolbox.base import AT, python_command

# `ask ADDRESS PORT`, by the toolbox's Python: says `reached` when something answers there.
_PROGRAM = """import socket, sys
asking = socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)
asking.sendall(b"GET /page HTTP/1.0\\r\\n\\r\\n")
print(asking.makefile("rb").read().decode().split()[-1])"""
ASK = f"ask() {{ {' '.join(python_command(AT))} -I -S -c '{_PROGRAM}' $1 $2 2>/dev/null; }}; "
SERVE = "mkdir /tmp/srv; echo reached > /tmp/srv/page; httpd -p 8080 -h /tmp/srv; "
OTHER = UID + BLOCK


def address_of(yard: ContainerYard, id: ReplicaId) -> str:
    template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return yard.host.command("inspect", "--format", template, f"yard-{id}").strip()


def test_replicas_of_one_workload_find_each_other_by_name(each_yard: ContainerYard) -> None:
    # A workload of its own: names are told by network, and others were here under the usual one, and were killed.
    workload = "wnamesakes"
    server = each_yard.launch(SERVE + "sleep 600", replica(0, workload=workload))
    address = address_of(each_yard, server)
    ask = ASK + "until ask worker-0 8080; do sleep 0.2; done; hostname"
    assert each_yard.run(ask, replica(1, workload=workload))[1] == "reached\nworker-1\n"
    assert each_yard.run(ASK + f"ask {address} 8080", replica(2, workload=workload))[1] == "reached\n"


def test_two_workloads_do_not_reach_each_other_either_way(each_yard: ContainerYard) -> None:
    first, second = replica(0), replica(0, workload="wbbbbbbbbb")
    script = (
        ASK
        + SERVE
        + (
            "until ask 127.0.0.1 8080; do sleep 0.1; done; while [ ! -e $HOME/target ]; do sleep 0.1; done; "
            "ask $(cat $HOME/target) 8080; echo tried; sleep 600"
        )
    )
    each_yard.launch(script, first)
    each_yard.launch(script, second, owner="bob", uid=OTHER)
    targets = {"ann": address_of(each_yard, second), "bob": address_of(each_yard, first)}
    for owner, target in targets.items():
        (each_yard.data / "files" / "user" / owner / "target").write_text(target)
    for id in (first, second):
        each_yard.says(id, "tried")
        assert each_yard.log(id) == "reached\ntried\n"  # each does serve itself


@contextmanager
def host_service(family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """Something of this machine that listens on every address it has."""
    listener = socket.socket(family)
    listener.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))
    listener.listen()
    is_over = threading.Event()
    listener.settimeout(0.2)

    def answer() -> None:
        while not is_over.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(2)
                connection.recv(1000)  # what is left unread would break the connection before the answer is there
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nreached\n")

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        is_over.set()
        thread.join()
        listener.close()


def test_services_of_the_machine_are_out_of_reach(each_yard: ContainerYard) -> None:
    own = [line.split()[3].split("/")[0] for line in _addresses()]
    with host_service() as port:
        gateway = "$(ip route | grep default | sed 's/.*via //; s/ .*//')"
        tries = "; ".join(f"ask {address} {port}" for address in (*own, gateway))
        script = f"{ASK} {tries}; ip route; echo tried"
        _, log = each_yard.run(script, replica())
    assert "tried" in log
    assert "default via" in log
    assert "reached" not in log


def _addresses() -> list[str]:
    text = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, check=True).stdout.decode()
    return [line for line in text.splitlines() if " lo " not in line and "yard" not in line]


def test_nor_are_they_by_the_addresses_that_every_link_has(container_yard: ContainerYard) -> None:
    if not Path("/proc/sys/net/ipv6").is_dir():
        pytest.skip("this machine has no IPv6")
    id = container_yard.launch("sleep 600", replica())
    bridge = container_yard.host.command(
        "network", "inspect", f"yard-{id.workload}", "--format", "{{.NetworkInterface}}"
    ).strip()
    said = subprocess.run(["ip", "-6", "-o", "addr", "show", bridge], capture_output=True, check=True).stdout.decode()
    if "fe80" not in said:
        pytest.skip("bridges here have no IPv6 address")
    link = next(word.split("/")[0] for word in said.split() if word.startswith("fe80"))
    with host_service(socket.AF_INET6) as port:
        _, log = container_yard.run(f"{ASK} ask {link}%eth0 {port}; echo tried", replica(1))
    assert log == "tried\n"


@pytest.mark.parametrize(
    "network",
    ["169.254.0.0/16", "100.100.100.200/32", "100.96.0.96/32", "168.63.129.16/32", "192.0.0.192/32", "10.9.0.0/16"],
)
def test_the_addresses_where_clouds_tell_secrets_are_closed_and_those_an_admin_named(network: str) -> None:
    told = [" ".join(rule) for rule in firewall.rules(["10.9.0.0/16"])[firewall.FORWARD]]
    first_let_through = next(number for number, line in enumerate(told) if "ESTABLISHED" in line)
    assert f"-i yard+ -d {network} -j DROP" in told[:first_let_through]


def test_what_an_admin_denied_stands_in_the_machines_own_rules_and_stays_there(container_yard: ContainerYard) -> None:
    wall = firewall.Firewall(["10.9.0.0/16", "fd00:ec2::254"])
    for _ in range(2):
        wall.ensure()
        said = subprocess.run(["iptables", "-w", "10", "-t", firewall.TABLE, "-S"], capture_output=True, check=True)
        assert said.stdout.decode().count("-d 10.9.0.0/16 -i yard+ -j DROP") == 1
    firewall.Firewall().ensure()


def test_the_rules_are_there_before_the_first_network_and_come_back_when_taken_away(
    container_yard: ContainerYard,
) -> None:
    container_yard.run("true", replica(0))
    subprocess.run(
        ["iptables", "-w", "10", "-t", firewall.TABLE, "-D", "INPUT", "-i", "yard+", "-j", firewall.INPUT], check=True
    )
    container_yard.run("true", replica(0, workload="wbbbbbbbbb"))
    said = subprocess.run(
        ["iptables", "-w", "10", "-t", firewall.TABLE, "-S", "INPUT"], capture_output=True, check=True
    ).stdout.decode()
    assert said.splitlines()[1] == f"-A INPUT -i yard+ -j {firewall.INPUT}"


def test_a_network_goes_with_the_last_of_its_workload(container_yard: ContainerYard) -> None:
    first, second = replica(0), replica(1)
    container_yard.launch("sleep 600", first)
    container_yard.run("true", second)

    def has_network() -> bool:
        return "yard-waaaaaaaaa" in container_yard.host.command("network", "ls", "--format", "{{.Name}}").split()

    assert has_network()
    container_yard.engine.stop(first, None, 0.0)
    container_yard.ended(first)
    container_yard.wait_for(lambda: not has_network(), "the network's removal")


def test_the_machines_own_network_is_for_groups_that_an_admin_named(each_yard: ContainerYard, tmp_path: Path) -> None:
    options = Options(host_network_groups=frozenset({"rdma"}))
    yard = ContainerYard(each_yard.host, tmp_path / "rdma", options=options)
    with host_service() as port:
        script = f"{ASK} ask 127.0.0.1 {port}"
        _, log = yard.run(script, replica(0, workload="wbbbbbbbbb"))
        assert "reached" not in log
        request = yard.request(replica(0, workload="wccccccccc"), "sh", "-c", script)
        yard.engine.launch(replace(request, group="rdma"))
        seen, log = yard.ended(request.id)
        yard.close()
    assert (seen.reason, log) == (None, "reached\n")


# --- which addresses ----------------------------------------------------------------------------------------------


def test_the_first_subnet_that_nobody_has_is_taken() -> None:
    pool = ipaddress.IPv4Network("10.9.0.0/24")
    taken = [ipaddress.IPv4Network("10.9.0.0/26"), ipaddress.IPv4Network("10.9.0.96/28")]
    assert str(free_subnet(pool, taken)) == "10.9.0.128/26"


def test_a_pool_that_is_used_up_is_told() -> None:
    pool = ipaddress.IPv4Network("10.9.0.0/26")
    with pytest.raises(NoRoom):
        free_subnet(pool, [ipaddress.IPv4Network("10.0.0.0/8")])


def test_the_ways_this_machine_has_are_read() -> None:
    text = (
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n"
        "br0\t0061E70A\t00000000\t0001\t0\t0\t0\tF0FFFFFF\n"
    )
    assert [str(net) for net in routes(text)] == ["10.231.97.0/28"]
