"""A change that would start a job, put into words: what to change, and where it would start then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuyard.words.facts import clean
from gpuyard.words.language import Language

NODES_NAMED = 3


def say_remedy(language: Language, changes: Mapping[str, str], nodes: Sequence[str]) -> str:
    """`changes` as `yard rerun --set` takes them: `cards`, or `roles.worker.cards` where a job has several roles."""
    parts = [_said(language, key, value, changes) for key, value in changes.items()]
    change = language.changes_and.join(part for part in parts if part)
    if not nodes:
        return language.change_starts_somewhere.format(change=_begun(change))
    named = language.comma.join(clean(node) for node in nodes[:NODES_NAMED])
    left = len(nodes) - NODES_NAMED
    where = named + language.more.format(count=left) if left > 0 else named
    return language.change_starts.format(change=_begun(change), nodes=where)


def _said(language: Language, path: str, value: str, changes: Mapping[str, str]) -> str:
    role, key = _role_and_key(path)
    beside = {_role_and_key(other)[1]: text for other, text in changes.items() if _role_and_key(other)[0] == role}
    splits = "replicas" in beside and "cards" in beside
    if splits and key == "replicas":
        return ""  # told together with the cards of each
    phrase = language.changes.get(f"{key}.{_form(key, value, splits)}") or language.changes.get(key, "{key}={value}")
    said = phrase.format(key=clean(key), value=clean(value), replicas=clean(beside.get("replicas", "")))
    return language.change_of_role.format(role=clean(role), change=said) if role else said


def _form(key: str, value: str, splits: bool) -> str:
    if value in ("", "[]", "{}"):
        return "none"
    if key == "cards" and splits:
        return "split"
    if key == "cards" and value.startswith("0."):
        return "share"
    return "one" if value == "1" else ""


def _role_and_key(path: str) -> tuple[str, str]:
    parts = path.split(".")
    return (parts[1], ".".join(parts[2:])) if parts[0] == "roles" and len(parts) > 2 else ("", path)


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]
