"""Public keys as people paste them: the good ones are read, everything else is told apart and never repeated."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.access.public_keys import parse_public_key
from gpuyard.domain.errors import BadInput
from gpuyard.domain.problems import Problem
from gpuyard.words import say

GOOD = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJnpm4N0z8dqXcP0c0pCVNwBq2qz1qXyXzVn4b0mXoQ"


def string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def line(kind: str, *parts: bytes) -> str:
    return f"{kind} {base64.b64encode(string(kind.encode()) + b''.join(parts)).decode()}"


def number(value: int) -> bytes:
    return string(value.to_bytes(value.bit_length() // 8 + 1, "big"))


def problem_with(text: str) -> Problem:
    with pytest.raises(BadInput) as refused:
        parse_public_key(text)
    assert text.strip()[:200] not in say(refused.value.reason, "en") or not text.strip()
    assert say(refused.value.reason, "zh")
    return Problem(refused.value.reason.facts["problem"])


@pytest.mark.parametrize(
    ("kind", "bits"), [("ed25519", 0), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521), ("rsa", 2048)]
)
def test_what_ssh_keygen_makes_is_read_with_its_fingerprint(tmp_path: Path, kind: str, bits: int) -> None:
    file = tmp_path / "key"
    size = ["-b", str(bits)] if bits else []
    make = ["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", "ann @ laptop", "-f", str(file)]
    subprocess.run(make, check=True)
    key = parse_public_key(file.with_suffix(".pub").read_text())
    told = subprocess.run(["ssh-keygen", "-l", "-f", str(file)], check=True, capture_output=True, text=True).stdout
    assert key.fingerprint == told.split()[1]
    assert key.comment == "ann @ laptop"
    assert parse_public_key(key.text).blob == key.blob
    assert problem_with(file.read_text()) is Problem.SSH_PRIVATE_KEY


def test_keys_that_live_in_a_security_key_are_read() -> None:
    parse_public_key(line("sk-ssh-ed25519@openssh.com", string(b"x" * 32), string(b"ssh:")))
    point = string(b"\x04" + b"x" * 64)
    parse_public_key(line("sk-ecdsa-sha2-nistp256@openssh.com", string(b"nistp256"), point, string(b"ssh:")))


SHORT_RSA = line("ssh-rsa", number(65537), number((1 << 1023) | 1))
OTHER_THINGS = [
    ("", Problem.SSH_KEY),
    ("# only a remark", Problem.SSH_KEY),
    ("hello world", Problem.SSH_KEY),
    ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----", Problem.SSH_KEY),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA", Problem.SSH_PRIVATE_KEY),
    ("PuTTY-User-Key-File-3: ssh-ed25519", Problem.SSH_PRIVATE_KEY),
    ("ssh-dss AAAAB3NzaC1kc3M=", Problem.SSH_KEY_KIND),
    ("ssh-ed448 AAAA", Problem.SSH_KEY_KIND),
    ("ssh-ed25519-cert-v01@openssh.com AAAA", Problem.SSH_CERTIFICATE),
    (f'command="rm -rf /" {GOOD}', Problem.SSH_KEY_OPTIONS),
    (f"no-pty,from=10.0.0.1 {GOOD}", Problem.SSH_KEY_OPTIONS),
    (f"cert-authority {GOOD}", Problem.SSH_KEY_OPTIONS),
    (f"{GOOD}\n{GOOD}", Problem.SSH_SEVERAL_KEYS),
    (GOOD[:40], Problem.SSH_KEY_BROKEN),
    (GOOD[:40] + "\n" + GOOD[40:], Problem.SSH_KEY_BROKEN),
    (GOOD + "AAAA", Problem.SSH_KEY_BROKEN),
    ("ssh-ed25519", Problem.SSH_KEY_BROKEN),
    ("ssh-ed25519 密钥", Problem.SSH_KEY_BROKEN),
    ("ssh-ed25519 " + GOOD.split()[1].replace("A", "*"), Problem.SSH_KEY_BROKEN),
    (line("ssh-ed25519", string(b"x" * 31)), Problem.SSH_KEY_BROKEN),
    (line("ssh-ed25519", string(b"x" * 32), string(b"more")), Problem.SSH_KEY_BROKEN),
    ("ssh-rsa " + GOOD.split()[1], Problem.SSH_KEY_BROKEN),
    (line("ecdsa-sha2-nistp256", string(b"nistp384"), string(b"\x04" + b"x" * 64)), Problem.SSH_KEY_BROKEN),
    (line("ecdsa-sha2-nistp256", string(b"nistp256"), string(b"\x02" + b"x" * 32)), Problem.SSH_KEY_BROKEN),
    (line("sk-ssh-ed25519@openssh.com", string(b"x" * 32)), Problem.SSH_KEY_BROKEN),
    (SHORT_RSA, Problem.SSH_RSA_SHORT),
    (line("ssh-rsa", number(2), number((1 << 2047) | 1)), Problem.SSH_KEY_BROKEN),
    (line("ssh-rsa", number(65537), number((1 << 20000) | 1)), Problem.SSH_KEY_BROKEN),
    (line("ssh-rsa", string(b"\x00\x00\x03"), number((1 << 2047) | 1)), Problem.SSH_KEY_BROKEN),
    (line("ssh-rsa", string(b"\xff"), number((1 << 2047) | 1)), Problem.SSH_KEY_BROKEN),
    ("A" * 20_000, Problem.TOO_LONG),
]


@pytest.mark.parametrize(("text", "problem"), OTHER_THINGS)
def test_what_is_no_usable_key_is_refused_in_words(text: str, problem: Problem) -> None:
    assert problem_with(text) is problem


def test_a_comment_is_cleaned_before_it_becomes_a_name() -> None:
    assert parse_public_key(f"{GOOD} ann\x1b[31m‮evil{'x' * 100}").comment == ("ann[31mevil" + "x" * 100)[:64]


@settings(deadline=None)
@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda raw: line("ssh-rsa", raw)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_public_key(text)
        return
    except BadInput as refused:
        reason = refused.reason
    assert say(reason, "en")
