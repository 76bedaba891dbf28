"""A file with several documents, taken apart without reading them."""

from __future__ import annotations

_SEPARATOR = "---"


def split(text: str) -> list[str]:
    """Its documents. Lines before one are left blank in it, so that the lines of its problems count right."""
    documents: list[str] = []
    begun: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if _is_separator(line):
            documents.append("\n".join(begun))
            begun = [""] * number + [line.replace(_SEPARATOR, "   ", 1)]
        else:
            begun.append(line)
    documents.append("\n".join(begun))
    said = [document for document in documents if any(map(_says_something, document.split("\n")))]
    return said or [text]


def _is_separator(line: str) -> bool:
    """Alone, or with something after a space."""
    return line.startswith(_SEPARATOR) and not line[len(_SEPARATOR) :][:1].strip()


def _says_something(line: str) -> bool:
    bare = line.strip()
    return bool(bare) and not bare.startswith(("#", "%")) and bare != "..."
