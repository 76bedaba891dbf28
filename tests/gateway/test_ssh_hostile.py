"""Visitors who know the protocol and mean no good: nothing they do fills the gateway's memory or stops it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.packet import Boolean, String
from tests.gateway.ssh_house import SshHouse

ENDLESS = "exec head -c 2000000000 /dev/zero"
HUGE_WINDOW = 1 << 30
MOST_GROWTH = 64 << 20


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def connect(house: SshHouse, key: Path) -> Any:
    options: dict[str, Any] = {"client_keys": [str(key)], "known_hosts": None, "config": None, "agent_path": None}
    return asyncssh.connect("127.0.0.1", house.port, username="ann+dev", **options)


async def growth_while(seconds: float) -> int:
    before, most, until = memory(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        most = max(most, memory() - before)
    return most


def test_a_visitor_with_a_huge_window_who_reads_nothing_fills_no_memory(house: SshHouse, key: Path) -> None:
    async def visit() -> int:
        async with connect(house, key) as connection:
            connection._transport.pause_reading()
            channel = connection.create_process(ENDLESS, window=HUGE_WINDOW, encoding=None)
            opening = asyncio.ensure_future(channel)
            connection._transport.resume_reading()
            process = await opening
            connection._transport.pause_reading()
            grown = await growth_while(3)
            process.close()
            connection.abort()
            return grown

    assert asyncio.run(visit()) < MOST_GROWTH
    assert house.ssh("ann+dev", "echo in", key=key).text == "in\n"


def test_a_visitor_who_never_finishes_an_exchange_of_keys_fills_no_memory(house: SshHouse, key: Path) -> None:
    async def visit() -> int:
        async with connect(house, key) as connection:
            process = await connection.create_process(ENDLESS, window=HUGE_WINDOW, encoding=None)
            connection._transport.pause_reading()
            connection._send_kexinit()  # and not a word more
            connection._kexinit_sent = True
            grown = await growth_while(3)
            process.close()
            connection.abort()
            return grown

    assert asyncio.run(visit()) < MOST_GROWTH
    assert house.ssh("ann+dev", "echo in", key=key).text == "in\n"


def test_keys_are_exchanged_anew_in_the_middle_and_nothing_is_lost(house: SshHouse, key: Path) -> None:
    ran = house.ssh("ann+dev", "head -c 30000000 /dev/zero", key=key, options=["-o", "RekeyLimit=1M"])
    assert (ran.code, len(ran.out)) == (0, 30_000_000)


def test_endless_variables_are_not_kept(house: SshHouse, key: Path) -> None:
    async def visit() -> tuple[int, str]:
        before = memory()
        async with connect(house, key) as connection:
            channel, _ = await connection.create_session(asyncssh.SSHClientSession, "cat", encoding=None)
            for number in range(2000):
                value = String(b"LC_%d" % number) + String(b"x" * 30_000)
                channel._send_request(b"env", value, want_reply=False)
                if number % 100 == 0:
                    await asyncio.sleep(0.01)
            done = await connection.run("echo in")
            channel.abort()
            return memory() - before, str(done.stdout)

    grown, told = asyncio.run(visit())
    assert told == "in\n"
    assert grown < MOST_GROWTH


def test_many_channels_asked_for_at_once_are_bounded(house: SshHouse, key: Path) -> None:
    async def visit() -> tuple[int, int]:
        async with connect(house, key) as connection:
            asked = [connection.create_process("cat", encoding=None) for _ in range(200)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            opened = [one for one in answers if not isinstance(one, BaseException)]
            refused = sum(1 for one in answers if isinstance(one, asyncssh.ChannelOpenError))
            for process in opened:
                process.close()
            return len(opened), refused

    assert asyncio.run(visit()) == (10, 190)
    assert house.ssh("ann+dev", "echo in", key=key).text == "in\n"


def test_requests_nobody_asks_for_are_refused_and_survived(house: SshHouse, key: Path) -> None:
    async def visit() -> str:
        async with connect(house, key) as connection:
            for name in (b"tcpip-forward", b"nonsense@example.com", b"keepalive@openssh.com"):
                connection._send_global_request(name, Boolean(False), String(b"x" * 1000))
            async with connection.create_process("cat", encoding=None) as process:
                for name in (b"x11-req", b"auth-agent-req@openssh.com", b"nonsense", b"window-change", b"signal"):
                    try:
                        process.channel._send_request(name, String(b"?"))
                    except OSError:
                        break
        async with connect(house, key) as connection:
            return str((await connection.run("echo in")).stdout)

    try:
        told = asyncio.run(visit())
    except asyncssh.Error:  # sent away for it: as good
        told = "in\n"
    assert told == "in\n"
    assert house.ssh("ann+dev", "echo in", key=key).text == "in\n"
