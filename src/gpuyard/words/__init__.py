"""Reasons put into words: a code with facts in, a sentence out, in English or Chinese.

A few files per language, by theme, hold the sentences; `language.py` fills them in, `facts.py` makes facts fit to be
shown.
Pure: nothing here reads a clock, a disk, a network or a random number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import State
from gpuyard.words.en import ENGLISH
from gpuyard.words.language import Language
from gpuyard.words.remedies import say_remedy
from gpuyard.words.zh import CHINESE

LanguageName = Literal["en", "zh"]
DEFAULT_LANGUAGE: LanguageName = "en"

_LANGUAGES: Mapping[LanguageName, Language] = {"en": ENGLISH, "zh": CHINESE}


def say(reason: Reason, language: LanguageName) -> str:
    """The sentence for a person. Never raises, whatever the facts hold."""
    return _LANGUAGES[language].say(reason)


def state_word(state: State, language: LanguageName) -> str:
    """The short name of a state, for tables."""
    return _LANGUAGES[language].states[state]


def sort_words(sort: str, language: LanguageName) -> str:
    """The class of a reason to wait, in a few words."""
    return _LANGUAGES[language].sorts[sort]


def remedy_words(changes: Mapping[str, str], nodes: Sequence[str], language: LanguageName) -> str:
    """What to change so that a job starts, and where it would."""
    return say_remedy(_LANGUAGES[language], changes, nodes)


def pick_language(accept_language: str) -> LanguageName:
    """The language an `Accept-Language` header prefers among ours; English when it asks for neither."""
    best: LanguageName = DEFAULT_LANGUAGE
    best_weight = 0.0
    for part in accept_language[:1000].split(","):
        tag, _, parameters = part.strip().lower().partition(";")
        name = _ours(tag.strip())
        weight = _weight(parameters)
        if name is not None and weight > best_weight:
            best, best_weight = name, weight
    return best


def _ours(tag: str) -> LanguageName | None:
    if tag == "zh" or tag.startswith(("zh-", "zh_")):
        return "zh"
    if tag == "en" or tag.startswith(("en-", "en_")):
        return "en"
    return None


def _weight(parameters: str) -> float:
    key, _, value = parameters.strip().partition("=")
    if key.strip() != "q":
        return 1.0
    digits = value.strip()
    return float(digits) if len(digits) <= 5 and digits.replace(".", "", 1).isdecimal() else 0.0
