"""English: policies, guarantees and the merging of groups."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template


def _names_nothing(facts: Facts) -> str:
    if facts.get("what") == "model":
        return "[{at:where}: ]no card here is of the model {name} just now."
    if facts.get("what") == "label":
        return "[{at:where}: ]no machine carries the label {name} just now."
    return "[{at:where}: ]there is no {what:noun}[ called {name}] just now."


POLICY_SENTENCES: Mapping[Code, Template] = {
    Code.NAMES_NOTHING: _names_nothing,
    Code.SERVERS_UNUSED: (
        "The order of the servers is kept, but not used[ while `placing` is `{placing}`]; set `placing` to `in_order`."
    ),
    Code.OVER_GUARANTEED: (
        "More is guaranteed than there is: {guaranteed:amount} to all groups together, and the machines have "
        "{there:amount}. Not every group can have its guarantee at the same time."
    ),
    Code.BELOW_USE: (
        "{used:amount} are in use, more than the new limit of {limit:bare}. Nothing is stopped; nothing new starts "
        "until enough of it has ended."
    ),
    Code.LEAD_NO_MORE: "{user} was a lead of {source} and is a plain member of {target} now.",
    Code.SHARE_MOVED: "The shared files of {source} are now in the folder `{source}` of the share of {target}.",
    Code.SHARE_NOT_MOVED: (
        "The shared files of {source} could not be moved[: {detail}]. Move the folder `files/share/{source}` in the "
        "server's data folder to `files/share/{target}/{source}` yourself, and give it to the group of {target}."
    ),
}

POLICY_PROBLEMS: Mapping[str, str] = {
    Problem.NUMBER: "expected a number[ above {above}][ and at most {most}]",
    Problem.POOL: (
        "there is no such pool[; there is: {allowed:list}][ (did you mean `{nearest}`?)]; write it under `pools`"
    ),
    Problem.CEILING_ORDER: (
        "the ceiling for {role} ({ceiling}) cannot be above the one for {above} ({its}); lower it, or raise the other"
    ),
    Problem.NORMAL_CEILING: (
        "members could submit nothing: the class `normal` ({normal}) is above their ceiling ({ceiling})"
    ),
    Problem.GUARANTEE_LIMIT: "the guarantee ({guaranteed:amount}) cannot be above the limit ({limit:amount})",
    Problem.USER_GUARANTEE: "only groups have guarantees; a user has a limit",
    Problem.SAME_GROUP: "a group cannot be merged into itself",
    Problem.SEVERAL_GROUPS: "you are in several groups ({allowed:list}): add `--group`, or `group:` in the job file",
    Problem.SAME_WORKLOAD: "both names mean the same job; name two different ones",
}

POLICY_NOUNS: Mapping[str, str] = {
    "policy.show": "see the policy",
    "policy.change": "change the policy",
    "policy.try": "try a policy",
    "group.merge": "merge groups",
}
