"""The validity check of a command against the current record: no reward, no future, no gold action."""

from __future__ import annotations

from collections.abc import Sequence

from had.envs.base import CommandGrammar, SituationGrammar
from had.records import HarnessFacts, Verdict

EXPLANATIONS = {
    Verdict.UNPARSABLE: "no command was found in the reply",
    Verdict.NOT_ADMISSIBLE: "it is not among the admissible commands",
    Verdict.NOT_HELD: "it uses an object that you do not hold",
    Verdict.ALREADY_SO: "what it would bring about is so already",
    Verdict.REPEATED_FAILURE: "it already had no effect in this state",
}


def check_command(
    command: str | None, commands: Sequence[str], facts: HarnessFacts, grammar: CommandGrammar
) -> Verdict:
    """Verdict on `command` at the state described by `commands` and `facts`.

    Where an environment lists no admissible commands (ScienceWorld), its grammar decides what is admissible.
    A command counts as a repeated failure once it had no effect in this same state, whether or not the
    harness reports it yet.
    """
    if command is None:
        return Verdict.UNPARSABLE
    if _is_not_held(command, facts, grammar):
        return Verdict.NOT_HELD
    if _is_already_so(command, facts, grammar):
        return Verdict.ALREADY_SO
    if command in dict(facts.failures):
        return Verdict.REPEATED_FAILURE
    return Verdict.VALID if is_admissible(command, commands, grammar) else Verdict.NOT_ADMISSIBLE


def is_admissible(command: str, commands: Sequence[str], grammar: CommandGrammar) -> bool:
    """True when the command is listed or, where nothing is listed, has the form of a command."""
    return grammar.is_listed(command, commands) if commands else grammar.accepts(command)


def is_misused(command: str, facts: HarnessFacts, grammar: CommandGrammar) -> bool:
    """True when the command contradicts the reported situation.

    It uses an object that is not held or, where the grammar has such rules (`SituationGrammar`), asks for
    what is so already.
    """
    return _is_not_held(command, facts, grammar) or _is_already_so(command, facts, grammar)


def _is_not_held(command: str, facts: HarnessFacts, grammar: CommandGrammar) -> bool:
    needed = grammar.required_object(command)
    return needed is not None and needed not in facts.held


def _is_already_so(command: str, facts: HarnessFacts, grammar: CommandGrammar) -> bool:
    return isinstance(grammar, SituationGrammar) and grammar.is_already_so(command, facts)
