"""The gateway with a certificate: everything over https, and nothing without it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.house import PASSWORD, House, host, read_all, running, wait_until
from tests.gateway.programs import Program, a_program
from tests.gateway.tls import make_certificate

from gpuyard.domain.workload import Workload
from gpuyard.gateway.certificates import Certificate

KEY = "AAAAAAAAAAAAAAAAAAAAAA=="


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with a_program() as program:
        yield program


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("gateway")
    with running(folder, certificate=make_certificate(folder), per_address=6) as house:
        house.person("ann")
        yield house


@pytest.fixture(scope="module")
def env(house: House, program: Program) -> Workload:
    return house.workload("ann", ports={8080: program.port})


def test_a_way_in_is_a_secure_cookie_of_that_very_host(house: House, env: Workload) -> None:
    code = house.code(house.log_in("ann")[0], env.id, "p8080")
    told = house.get(host(env, "p8080"), f"/.yard/enter?code={code}")
    assert told.status == 303
    name, *rest = (part.strip() for part in told.headers["Set-Cookie"].split(";"))
    assert name.startswith("__Host-yard_gate=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(rest)
    assert not any(part.lower().startswith("domain") for part in rest)


def test_by_paths_it_is_a_secure_cookie_below_the_path(
    tmp_path_factory: pytest.TempPathFactory, program: Program
) -> None:
    folder = tmp_path_factory.mktemp("paths")
    with running(folder, certificate=make_certificate(folder), paths=True) as house:
        house.person("ann")
        env = house.workload("ann", ports={8080: program.port})
        code = house.code(house.log_in("ann")[0], env.id, "p8080")
        told = house.get("localhost", f"/i/{env.id}/p8080/.yard/enter?code={code}")
        cookie = told.headers["Set-Cookie"]
        assert cookie.startswith("__Secure-yard_gate=")
        assert f"Path=/i/{env.id}/p8080/;" in cookie
        assert "; Secure" in cookie
        seen = house.get("localhost", f"/i/{env.id}/p8080/", Cookie=cookie.partition(";")[0])
        assert seen.status == 200


def test_a_page_is_visited_and_told_that_it_is_https(house: House, env: Workload, program: Program) -> None:
    cookie = house.cookie("ann", env, "p8080")
    assert house.get(host(env, "p8080"), "/page", Cookie=cookie).status == 200
    assert program.header("X-Forwarded-Proto") == ["https"]
    assert all("yard_gate" not in value for value in program.header("Cookie"))


def test_links_lead_to_https(house: House, env: Workload) -> None:
    base = f"https://localhost:{house.port}"
    told = house.get(host(env, "p8080"), "/deep?x=1", Accept="text/html")
    assert told.headers["Location"].startswith(f"{base}/.yard/login?to=p8080-{env.id}")
    form = f"name=ann&password={PASSWORD.replace(' ', '+')}&to=p8080-{env.id}&next=/deep"
    done = house.ask("POST", "localhost", "/.yard/login", form, Origin=base)
    assert done.status == 303
    cookie = done.headers["Set-Cookie"].partition(";")[0]
    on = house.get("localhost", done.headers["Location"], Cookie=cookie)
    assert on.headers["Location"].startswith(f"https://{host(env, 'p8080')}:{house.port}/.yard/enter?code=")


def test_a_form_on_a_plain_page_of_the_same_name_is_a_strangers(house: House) -> None:
    """Somebody in between can make such a page; ours are all over https."""
    for scheme, status in (("http", 403), ("https", 401)):
        origin = f"{scheme}://localhost:{house.port}"
        assert house.ask("POST", "localhost", "/.yard/login", "name=x&password=y", Origin=origin).status == status


def test_a_websocket_goes_through(house: House, env: Workload) -> None:
    cookie, name = house.cookie("ann", env, "p8080"), f"{host(env, 'p8080')}:{house.port}"
    lines = ["GET /ws HTTP/1.1", f"Host: {name}", f"Origin: https://{name}", f"Cookie: {cookie}"]
    lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {KEY}"]
    assert house.tls is not None
    with house.tls.wrap_socket(house.connect(), server_hostname="localhost") as sock:
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 101 ")
        sock.sendall(b"anything at all")
        assert sock.recv(65536) == b"anything at all"


# --- without TLS --------------------------------------------------------------------------------------------------


def test_who_comes_by_plain_http_is_sent_to_https(house: House, env: Workload) -> None:
    name = f"{host(env, 'p8080')}:{house.port}"
    told = house.raw(f"GET /a%20b?c=\xe9 HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode("latin-1"))
    assert told.startswith(b"HTTP/1.1 303 ")
    assert f"Location: https://{name}/a%20b?c=%E9\r\n".encode() in told
    assert b"Set-Cookie" not in told


def test_nobody_is_sent_to_a_host_that_is_not_ours(house: House) -> None:
    told = house.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("upgrade", ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n"])
def test_a_password_sent_plainly_is_not_taken(house: House, upgrade: str) -> None:
    method = "GET" if upgrade else "POST"
    base = f"localhost:{house.port}"
    head = f"{method} /.yard/login HTTP/1.1\r\nHost: {base}\r\nOrigin: http://{base}\r\n{upgrade}Content-Length: "
    body = "" if upgrade else f"name=ann&password={PASSWORD.replace(' ', '+')}"
    told = house.raw(f"{head}{len(body)}\r\n\r\n{body}".encode())
    assert told.startswith(b"HTTP/1.1 403 ")
    assert b"https" in told
    assert b"Set-Cookie" not in told


def test_who_does_not_speak_tls_well_is_let_go(house: House) -> None:
    with house.connect() as sock:
        sock.sendall(b"\x16\x03\x01\x00\x05nonsense" + b"\0" * 100)
        read_all(sock)
    assert house.get("localhost", "/.yard/health").status == 200


def test_those_who_never_finish_the_handshake_are_counted(house: House) -> None:
    wait_until(lambda: _some_are_turned_away(house))
    wait_until(lambda: _answers(house))


def _some_are_turned_away(house: House) -> bool:
    """While the first, whose time is up first, still stands there. Where nobody looked for that long, it tells nothing,
    and others have to come."""
    with contextlib.ExitStack() as leaving:
        silent = [leaving.enter_context(house.connect()) for _ in range(10)]
        for sock in silent[:4]:
            with contextlib.suppress(OSError):  # turned away for those of before, who are just going
                sock.sendall(b"\x16")
        wait_until(lambda: any(map(_is_closed, silent)))
        return any(map(_is_closed, silent[1:])) and not _is_closed(silent[0])


def _answers(house: House) -> bool:
    try:
        return house.get("localhost", "/.yard/health").status == 200
    except OSError:
        return False


def _is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(100) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


# --- the certificate ----------------------------------------------------------------------------------------------


def test_a_renewed_certificate_is_taken_up_and_a_broken_one_is_not(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "first")
    there = Certificate(str(cert), str(key))
    (tmp_path / "next").mkdir()
    second = make_certificate(tmp_path / "next", "second")
    shutil.copy(second[0], cert)
    there.look_again()
    assert _shown(there) == "first", "the key of the second is still to come"
    shutil.copy(second[1], key)
    there.look_again()
    assert _shown(there) == "second"
    cert.write_text("no certificate")
    there.look_again()
    assert _shown(there) == "second"
    cert.unlink()
    there.look_again()
    assert _shown(there) == "second"


def _shown(certificate: Certificate) -> str:
    """The name on it, as a visitor sees it in the handshake."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_visitor, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    visitor = client.wrap_bio(to_visitor, to_server)
    server = certificate.context.wrap_bio(to_server, to_visitor, server_side=True)
    for side in (visitor, server, visitor):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    der = visitor.getpeercert(binary_form=True)
    assert der is not None
    return next(name for name in ("first", "second") if name.encode() in der)
