"""SSH keys over the API: one's own to add, seen and removed by their owner and by admins, nobody else."""

from __future__ import annotations

import base64
import secrets

import httpx2
from tests.api.yard import Yard

KEYS = "/api/v1/keys"


def new_key(comment: str = "laptop") -> str:
    kind = b"ssh-ed25519"
    blob = len(kind).to_bytes(4, "big") + kind + (32).to_bytes(4, "big") + secrets.token_bytes(32)
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} {comment}"


def add(client: httpx2.Client, key: str, **more: str) -> dict[str, str]:
    made = client.post(KEYS, json={"public_key": key, **more})
    assert made.status_code == 201, made.text
    return dict(made.json())


def test_a_key_is_added_listed_and_removed(server: Yard) -> None:
    ann = server.person("key-ann")
    made = add(ann, new_key("ann at home"))
    assert made["name"] == "ann at home"
    assert made["kind"] == "ssh-ed25519"
    assert made["fingerprint"].startswith("SHA256:")
    named = add(ann, new_key(), name="desk")
    assert [item["id"] for item in ann.get(KEYS).json()["items"]] == [made["id"], named["id"]]
    assert ann.delete(f"{KEYS}/{made['id']}").status_code == 200
    assert [item["name"] for item in ann.get(KEYS).json()["items"]] == ["desk"]
    assert ann.delete(f"{KEYS}/{made['id']}").status_code == 404


def test_the_same_key_twice_is_refused_but_two_people_may_share_one(server: Yard) -> None:
    ann, ben, key = server.person("key-twice"), server.person("key-shared"), new_key()
    add(ann, key)
    assert ann.post(KEYS, json={"public_key": key}).status_code == 409
    add(ben, key)


def test_others_keys_are_not_seen_and_not_removed(server: Yard) -> None:
    ann, eve = server.person("key-owner"), server.person("key-eve")
    made = add(ann, new_key())
    assert eve.get(KEYS, params={"user": "key-owner"}).status_code == 404
    assert eve.delete(f"{KEYS}/{made['id']}").status_code == 404
    nothing = eve.delete(f"{KEYS}/kffffffffffff").json()["error"]["message"]
    assert eve.delete(f"{KEYS}/{made['id']}").json()["error"]["message"] == nothing.replace("kffffffffffff", made["id"])
    assert len(ann.get(KEYS).json()["items"]) == 1


def test_an_admin_sees_and_removes_others_keys_but_adds_none_for_them(server: Yard) -> None:
    ann = server.person("key-staff")
    made = add(ann, new_key())
    with server.owner as admin:
        assert admin.get(KEYS, params={"user": "key-staff"}).json()["items"][0]["id"] == made["id"]
        assert admin.post(KEYS, json={"public_key": new_key(), "user": "key-staff"}).status_code == 400
        assert admin.delete(f"{KEYS}/{made['id']}").status_code == 200
        trail = admin.get("/api/v1/audit").json()["items"]
    assert ann.get(KEYS).json()["items"] == []
    removed = next(entry for entry in trail if entry["action"] == "key.remove" and entry["object"] == made["id"])
    assert removed["facts"]["user"] == "key-staff"


def test_a_token_of_less_than_full_reach_adds_no_key(server: Yard) -> None:
    """A key would outlive the token and let its holder in for good."""
    server.person("key-token")
    for scope in ("read", "write"):
        with server.client(server.token_of("key-token", scope)) as client:
            assert client.post(KEYS, json={"public_key": new_key()}).status_code == 403


def test_a_private_key_is_refused_in_both_languages_and_not_repeated(server: Yard) -> None:
    ann = server.person("key-private")
    secret = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
    for language, word in (("en", "private key"), ("zh", "私钥")):
        answer = ann.post(KEYS, json={"public_key": secret}, headers={"Accept-Language": language})
        assert answer.status_code == 400
        assert word in answer.json()["error"]["message"]
        assert "b3BlbnNzaC1" not in answer.text


def test_nobody_has_keys_without_end(server: Yard) -> None:
    ann = server.person("key-many")
    for _ in range(50):
        add(ann, new_key())
    refused = ann.post(KEYS, json={"public_key": new_key()})
    assert refused.status_code == 409
    assert "50" in refused.json()["error"]["message"]


def test_where_the_gateway_is_anybody_logged_in_may_ask(server: Yard) -> None:
    ann = server.person("key-gateway")
    told = ann.get("/api/v1/gateway").json()
    assert told == dict.fromkeys(("url", "ssh_host", "ssh_port", "host_key", "host_public_key"))
    with server.client() as stranger:
        assert stranger.get("/api/v1/gateway").status_code == 401


def test_a_person_of_the_same_name_does_not_inherit_the_keys(server: Yard) -> None:
    ann = server.person("key-again")
    add(ann, new_key())
    with server.owner as admin:
        assert admin.delete("/api/v1/users/key-again").status_code == 200
    again = server.person("key-again")
    assert again.get(KEYS).json()["items"] == []
