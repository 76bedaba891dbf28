"""What editors do over SSH: the sequence of VS Code Remote-SSH, and the one of PyCharm, with OpenSSH's own client."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
import tarfile
from pathlib import Path

import pytest
from tests.gateway.ssh_house import SshHouse, wait_until
from tests.ports import a_port

from gpuyard.domain.workload import Workload

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the OpenSSH client")

# As the editor sends it: markers around every answer, a server that is unpacked, started in the background on a port
# of its own choice, and asked for that port; the connection then stays open for as long as the window does.
INSTALL = r"""
echo "a1b2c3: running"
echo "Script executing under PID: $$"
umask 0077
VSCODE_AGENT_FOLDER="$HOME/.vscode-server"
KERNEL="$(uname -rsv)"; ARCH="$(uname -m)"
echo "a1b2c3==platform==${KERNEL%% *}==$ARCH==$(getconf LONG_BIT)==end"
command -v bash >/dev/null && echo "shell==$SHELL=="
mkdir -p "$VSCODE_AGENT_FOLDER/bin/commit"
cd "$VSCODE_AGENT_FOLDER/bin/commit"
if [ ! -f server.py ]; then echo "a1b2c3:trigger_server_download"; echo "artifact==server=="; fi
"""
START = r"""
tar -xf "$HOME/vscode-server.tar" --strip-components 1
cd "$HOME"
SERVER="$VSCODE_AGENT_FOLDER/bin/commit/server.py"
nohup python3 "$SERVER" > "$VSCODE_AGENT_FOLDER/log" 2>&1 < /dev/null &
for i in $(seq 1 100); do
  PORT=$(sed -n 's/^listening on //p' "$VSCODE_AGENT_FOLDER/log" 2>/dev/null); [ -n "$PORT" ] && break; sleep 0.1
done
echo "a1b2c3: start"
echo "listeningOn==$PORT=="
echo "osReleaseId==$(. /etc/os-release; echo $ID)=="
echo "exitCode==0=="
echo "a1b2c3: end"
cat > /dev/null
"""
SERVER = """
import http.server
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print("listening on", server.server_address[1], flush=True)
server.serve_forever()
"""


def test_vs_code_installs_its_server_starts_it_and_reaches_it(
    house: SshHouse, dev: Workload, key: Path, tmp_path: Path
) -> None:
    assert house.ssh("ann+dev", "uname", "-s", key=key).text == "Linux\n"
    socks = a_port()
    options = ["-T", "-D", str(socks), "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5"]
    window = house.start(house.command("ann+dev", "bash", key=key, options=options))
    try:
        assert window.stdin is not None
        assert window.stdout is not None
        window.stdin.write(INSTALL.encode())
        window.stdin.flush()
        told = _read_to(window.stdout, b"artifact==server==\n")
        assert b"a1b2c3==platform==Linux==" in told

        archive = _archive(tmp_path)  # fetched by the editor, and sent over a second connection by standard input
        digest = hashlib.sha256(archive).hexdigest()
        sent = house.ssh("ann+dev", "cat > vscode-server.tar && sha256sum vscode-server.tar", key=key, stdin=archive)
        assert sent.text.startswith(digest)

        window.stdin.write(START.encode())
        window.stdin.flush()
        told = _read_to(window.stdout, b"a1b2c3: end\n")
        port = int(told.split(b"listeningOn==")[1].split(b"==")[0])
        (house.home(dev) / "hello.txt").write_text("through the window")
        assert b"through the window" in _get(socks, "127.0.0.1", port, "/hello.txt")
        assert b"through the window" in _get(socks, "localhost", port, "/hello.txt")

        window.stdin.close()
        assert window.wait(20) == 0
    finally:
        window.kill()
        window.wait()
        for stream in (window.stdin, window.stdout, window.stderr):
            if stream is not None:
                stream.close()
    # The window is closed, and the server is still there for the next one.
    end = 'pkill -f "$HOME/.vscode-server/bin/commit/server.py"'  # this one, of all that run on this machine
    again = house.ssh("ann+dev", f"cat ~/.vscode-server/log; {end}", key=key)
    assert f"listening on {port}" in again.text


def _read_to(stream: object, mark: bytes) -> bytes:
    told = b""
    while mark not in told:
        piece = stream.readline()  # type: ignore[attr-defined]
        assert piece, told
        told += piece
    return told


def _archive(folder: Path) -> bytes:
    (folder / "vscode").mkdir()
    (folder / "vscode" / "server.py").write_text(SERVER)
    (folder / "vscode" / "node").write_bytes(os.urandom(8_000_000))
    with tarfile.open(folder / "server.tar", "w") as tar:
        tar.add(folder / "vscode", "vscode-server")
    return (folder / "server.tar").read_bytes()


def _get(socks: int, host: str, port: int, path: str) -> bytes:
    """Through the editor's SOCKS door."""
    connection = http.client.HTTPConnection("127.0.0.1", socks, timeout=20)
    sock = socket.create_connection(("127.0.0.1", socks), timeout=20)
    sock.sendall(b"\x05\x01\x00")
    assert sock.recv(2) == b"\x05\x00"
    sock.sendall(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + port.to_bytes(2, "big"))
    assert sock.recv(10)[1] == 0
    connection.sock = sock
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_pycharm_asks_by_keyboard_uploads_by_sftp_and_runs(house: SshHouse, dev: Workload, tmp_path: Path) -> None:
    """It asks for the password interactively, looks at the system, uploads the project, runs the interpreter with a
    terminal, and forwards a port for the debugger."""
    by_keyboard = ["-o", "PreferredAuthentications=keyboard-interactive"]
    look = 'echo "$HOME"; which -a python3; python3 --version; uname -a'
    seen = house.ssh("ann+dev", look, options=by_keyboard)
    assert seen.code == 0
    assert seen.text.startswith(f"{house.home(dev)}\n")
    (tmp_path / "main.py").write_text("import sys\nprint('ran with', sys.argv[1:])\nsys.exit(3)\n")
    orders = f"-mkdir project\nput {tmp_path}/main.py project/main.py\nchmod 644 project/main.py\n"
    sftp = ["sftp", *by_keyboard, *house.options(None), "-oBatchMode=no", "-b", "-", "-P", str(house.port)]
    sent = house.run([*sftp, "ann+dev@127.0.0.1"], orders.encode())
    assert sent.code == 0, sent.err
    ran = house.ssh("ann+dev", "env PYTHONUNBUFFERED=1 python3 project/main.py --debug", options=[*by_keyboard, "-tt"])
    assert (ran.code, ran.text) == (3, "ran with ['--debug']\r\n")


def test_a_connection_that_says_nothing_is_kept(house: SshHouse, dev: Workload, key: Path) -> None:
    visit = house.start(house.command("ann+dev", "cat", key=key, options=["-o", "ServerAliveInterval=1"]))
    try:
        wait_until(lambda: visit.poll() is None)
        assert visit.stdin is not None
        assert visit.stdout is not None
        wait_until(lambda: _one_line(visit.stdin, visit.stdout))
        with pytest.raises(Exception, match="timed out"):
            visit.wait(6)
        assert _one_line(visit.stdin, visit.stdout)
    finally:
        visit.communicate(b"", timeout=20)


def _one_line(into: object, out: object) -> bool:
    into.write(b"still there\n")  # type: ignore[attr-defined]
    into.flush()  # type: ignore[attr-defined]
    return out.readline() == b"still there\n"  # type: ignore[attr-defined, no-any-return]
