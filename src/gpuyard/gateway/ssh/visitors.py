"""One connection: who comes, what they may open, and when they have to leave.

Whatever is asked for and not listed here is refused: agent and X11 forwarding, tunnels, sockets in the file system,
listening ports, and every address but the workload's own loopback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import asyncssh
from asyncssh.auth import KbdIntChallenge, KbdIntResponse

from gpuyard import words
from gpuyard.access.actors import Actor
from gpuyard.domain.errors import LoginNeeded, YardError
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.gateway.ssh.forwards import Forward, is_own_loopback
from gpuyard.gateway.ssh.logins import Proof
from gpuyard.gateway.ssh.names import Address, read_address
from gpuyard.gateway.ssh.places import Target
from gpuyard.gateway.ssh.pumps import Source
from gpuyard.gateway.ssh.sessions import Session

if TYPE_CHECKING:
    from gpuyard.gateway.ssh.house import House

MOST_SESSIONS = 10  # over one connection
MOST_SESSIONS_PER_USER, MOST_FORWARDS_PER_USER = 48, 128
MOST_PASSWORDS, MOST_KEYS = 6, 24  # tries over one connection; an agent may hold many keys
# What may lie here of one channel that nobody reads inside: together with how many channels one person has, the bound
# of what one person can make this process keep.
SESSION_WINDOW, FORWARD_WINDOW, PACKET = 2 * 1024 * 1024, 512 * 1024, 64 * 1024
REKEY_LOOK_SECONDS = 0.02
PROMPT = {"en": "Password: ", "zh": "密码: "}
_log = logging.getLogger(__name__)


class Visitor(asyncssh.SSHServer):
    """Everything asyncssh asks about one connection."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.user = ""
        self.peer = ""
        self.proof: Proof | None = None
        self._connection: asyncssh.SSHServerConnection
        self._address = Address("", None)
        self._proofs: dict[str, Proof] = {}
        self._tries = {"password": 0, "key": 0}
        self._begun: asyncio.Task[Actor] | None = None
        self._entered: str | None = None
        self._sessions: set[Session] = set()
        self.forwards = 0
        self._sources: set[Source] = set()
        self._holds: set[str] = set()
        self._gone = False
        self._remarks: list[Reason] = []

    # --- coming and going -----------------------------------------------------------------------------------------

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        peer = conn.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else ""
        # asyncssh leaves these two empty: without them a visitor who reads nothing would fill the memory.
        conn.pause_writing = self._hold_all  # type: ignore[method-assign]
        conn.resume_writing = self._release_all  # type: ignore[method-assign]
        if not self.house.arrived(self):
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self.house.left(self)
        if self._begun is not None:
            self._begun.cancel()

    def leave(self, reason: Reason, code: int = asyncssh.DISC_BY_APPLICATION) -> None:
        """Sent away, with words: also in every session, because ssh may be gone before it has read the last of it."""
        for session in self._sessions:
            session.say(reason)
        self._connection.disconnect(code, words.say(reason, self.house.language))

    @property
    def connection_env(self) -> dict[str, str]:
        """As sshd tells it, for programs that want to know."""
        there = self._connection.get_extra_info("peername") or ("", 0)
        here = self._connection.get_extra_info("sockname") or ("", 0)
        return {
            "SSH_CLIENT": f"{there[0]} {there[1]} {here[1]}",
            "SSH_CONNECTION": f"{there[0]} {there[1]} {here[0]} {here[1]}",
        }

    # --- who it is ------------------------------------------------------------------------------------------------

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def kbdint_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> KbdIntChallenge:
        return "", "", "", [(PROMPT[self.house.language], False)]

    async def validate_kbdint_response(self, username: str, responses: KbdIntResponse) -> KbdIntChallenge:
        return len(responses) == 1 and await self.validate_password(username, responses[0])

    async def validate_password(self, username: str, password: str) -> bool:
        if not self._may_try("password", MOST_PASSWORDS):
            return False
        name = read_address(username).user
        try:
            proof = await self.house.in_thread(self.house.logins.by_password, name, password, self.peer)
        except LoginNeeded:
            return False
        except YardError as error:
            self._connection.send_auth_banner(words.say(error.reason, self.house.language) + "\n")
            return False
        self._proofs[username] = proof
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Asked twice: may this key be tried, and, with the signature, is this it. The signature is checked by
        asyncssh right after the second answer."""
        if not self._may_try("key", MOST_KEYS):
            return False
        name = read_address(username).user
        try:
            proof = await self.house.in_thread(self.house.logins.by_key, name, key.public_data)
        except YardError as error:
            self._connection.send_auth_banner(words.say(error.reason, self.house.language) + "\n")
            return False
        if proof is not None:
            self._tries["key"] -= 1
            self._proofs[username] = proof
        return proof is not None

    def _may_try(self, means: str, most: int) -> bool:
        self._tries[means] += 1
        if self._tries[means] <= most:
            return True
        self.leave(because(Code.WRONG_PASSWORD), asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE)
        return False

    def auth_completed(self) -> None:
        """By the name the connection was granted to, and the proof that was last seen for that very name."""
        username = self._connection.get_extra_info("username") or ""
        proof = self._proofs.get(username)
        self._proofs.clear()
        self._address = read_address(username)
        if proof is None or proof.user != self._address.user:
            self._connection.abort()
            return
        self.user, self.proof = proof.user, proof
        if not self.house.admitted(self):
            limit = self.house.most_per_user
            too_many = because(Code.TOO_MANY_AT_ONCE, what="ssh.connections", limit=limit)
            self.leave(too_many, asyncssh.DISC_TOO_MANY_CONNECTIONS)
            return
        self._begin(proof)

    def _begin(self, proof: Proof) -> asyncio.Task[Actor]:
        begin = self.house.in_thread(self.house.logins.begin, proof, self._address, self.peer)
        self._begun = asyncio.create_task(begin)
        self._begun.add_done_callback(_look_at)
        return self._begun

    # --- where they go --------------------------------------------------------------------------------------------

    async def enter(self) -> Target:
        """The replica meant, if it runs and may be entered at this moment. Raises domain errors."""
        assert self.proof is not None
        begun = self._begun
        if begun is None or (begun.done() and begun.exception() is not None):  # the store was busy: once more
            begun = self._begin(self.proof)
        actor = await asyncio.shield(begun)
        enter = self.house.logins.enter
        target = await self.house.in_thread(enter, self.proof, actor, self._address, self._entered)
        self._entered = target.workload
        self.worked()
        return target

    def worked(self) -> None:
        """Something was done: whoever works here is not idle."""
        if self._entered is not None:
            self.house.used(self._entered)

    def session_requested(self) -> tuple[asyncssh.SSHServerChannel[bytes], Session]:
        for limit, there in (
            (MOST_SESSIONS, self.sessions),
            (MOST_SESSIONS_PER_USER, self.house.sessions_of(self.user)),
        ):
            if there >= limit:
                raise self._too_many("ssh.sessions", limit)
        session = Session(self)
        self._sessions.add(session)
        return self._connection.create_server_channel(None, "strict", SESSION_WINDOW, PACKET), session

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def session_over(self, session: Session) -> None:
        self._sessions.discard(session)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> tuple[asyncssh.SSHTCPChannel[bytes], Coroutine[Any, Any, Forward]]:
        """Not a coroutine itself: asyncssh takes what this returns, and awaits that."""
        if not is_own_loopback(dest_host, dest_port):
            target = f"{dest_host[:100]}:{dest_port}"
            raise self._no_channel(because(Code.NO_FORWARDING, what="tcp", target=target))
        if self.house.forwards_of(self.user) >= MOST_FORWARDS_PER_USER:
            raise self._too_many("ssh.forwards", MOST_FORWARDS_PER_USER)
        self.forwards += 1
        channel = self._connection.create_tcp_channel(None, "strict", FORWARD_WINDOW, PACKET)
        return channel, self._forward(dest_port)

    async def _forward(self, port: int) -> Forward:
        try:
            target = await self.enter()
            connected = await self.house.broker.connect(target.replica, self.user, port=port)
        except YardError as error:
            self.forward_over()
            raise self._no_channel(error.reason, asyncssh.OPEN_CONNECT_FAILED) from error
        except BaseException:
            self.forward_over()
            raise
        if self._gone:  # meanwhile: nobody would ever close it
            connected.close()
            self.forward_over()
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "")
        return Forward(self, connected)

    def forward_over(self) -> None:
        self.forwards -= 1

    # --- what nobody gets -----------------------------------------------------------------------------------------

    def unix_connection_requested(self, dest_path: str) -> bool:
        raise self._no_channel(because(Code.NO_FORWARDING, what="unix", target=dest_path[:100]))

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        target = f"{listen_host[:100] or 'localhost'}:{listen_port}"
        self._remark(because(Code.NO_FORWARDING, what="remote", target=target))
        return False

    def unix_server_requested(self, listen_path: str) -> bool:
        self._remark(because(Code.NO_FORWARDING, what="remote", target=listen_path[:100]))
        return False

    def tun_requested(self, unit: int | None) -> bool:
        raise self._no_channel(because(Code.NO_FORWARDING, what="tunnel"))

    def tap_requested(self, unit: int | None) -> bool:
        raise self._no_channel(because(Code.NO_FORWARDING, what="tunnel"))

    def _no_channel(
        self, reason: Reason, code: int = asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED
    ) -> asyncssh.ChannelOpenError:
        return asyncssh.ChannelOpenError(code, words.say(reason, self.house.language))

    def _too_many(self, what: str, limit: int) -> asyncssh.ChannelOpenError:
        reason = because(Code.TOO_MANY_AT_ONCE, what=what, limit=limit)
        return self._no_channel(reason, asyncssh.OPEN_RESOURCE_SHORTAGE)

    def _remark(self, reason: Reason) -> None:
        """A listening port cannot be refused with words: they are said where the next session begins."""
        if len(self._remarks) < 5:
            self._remarks.append(reason)

    def take_remarks(self) -> list[Reason]:
        remarks, self._remarks = self._remarks, []
        return remarks

    # --- how fast -------------------------------------------------------------------------------------------------

    def add_source(self, source: Source) -> None:
        self._sources.add(source)
        for why in self._holds:
            source.hold(why)

    def remove_source(self, source: Source) -> None:
        self._sources.discard(source)

    def _hold_all(self) -> None:
        self._hold("clogged")

    def _release_all(self) -> None:
        self._release("clogged")

    def sent(self) -> None:
        """Told after every piece. While keys are exchanged anew asyncssh keeps what is sent in memory, however much,
        and the visitor decides how long that takes: until it is done, no more is read."""
        if not self._has_keys() and "keys" not in self._holds:
            self._hold("keys")
            asyncio.get_running_loop().call_later(REKEY_LOOK_SECONDS, self._look_at_keys)

    def _look_at_keys(self) -> None:
        if self._gone:
            return
        if self._has_keys():
            self._release("keys")
        else:
            asyncio.get_running_loop().call_later(REKEY_LOOK_SECONDS, self._look_at_keys)

    def _has_keys(self) -> bool:
        return bool(getattr(self._connection, "_kex_complete", True))

    def _hold(self, why: str) -> None:
        self._holds.add(why)
        for source in self._sources:
            source.hold(why)

    def _release(self, why: str) -> None:
        self._holds.discard(why)
        for source in self._sources:
            source.release(why)


def _look_at(task: asyncio.Task[Actor]) -> None:
    """Whoever enters hears of it; when nobody does, it is still written down."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("a login over SSH could not be recorded: %s", error)
