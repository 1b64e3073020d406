"""Labels in the student's token ids: what a teacher sampled, as the student would have to say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from had.prompts.render import Renderer
from had.records import Response

# In the format of every environment; with marks, digits and a line break, on which tokenizers differ.
SAMPLE_REPLY = "Thought: I'll look in drawer 12 first.\nAction: go to drawer 12"
REPLACEMENT = "\ufffd"  # what the first bytes of a character that was cut off decode to


class LabelReader(Protocol):
    """Makes a label of what a teacher sampled."""

    def response(self, ids: Sequence[int], logprobs: Sequence[float], is_complete: bool) -> Response | None:
        """The response in the student's ids; None when these cannot express it.

        Args:
            ids: sampled ids of the teacher.
            logprobs: their log-probabilities.
            is_complete: the reply ended by itself.
        """


@dataclass(frozen=True)
class KeptIds:
    """Of one vocabulary: the sampled ids are the label.

    Only an end of turn that the student does not know is replaced by its own: two models of one vocabulary
    may end their turns differently.

    Attributes:
        teacher, student: the two chat formats.
        end_of_turn: the student's.
    """

    teacher: Renderer
    student: Renderer
    end_of_turn: int

    def response(self, ids: Sequence[int], logprobs: Sequence[float], is_complete: bool) -> Response | None:
        own = self.teacher.response(ids, logprobs, is_complete)
        if not is_complete or not own.ids or own.ids[-1] in self.student.end_ids:
            return own
        return replace(own, ids=(*own.ids[:-1], self.end_of_turn))


@dataclass(frozen=True)
class ReencodedText:
    """Of two vocabularies: the label is the teacher's text in the student's tokens.

    The parser finds the action and its span anew, in these tokens. A complete reply ends with the student's
    end of turn, one that was cut at its limit ends without. The limit on the length of a reply was the
    teacher's, in its own tokens; nothing is cut here. Control tokens that the teacher wrote into its reply
    become ordinary text. Log-probabilities belong to the teacher's tokens, so the label has none.

    Attributes:
        teacher, student: the two chat formats.
        end_of_turn: the student's.
    """

    teacher: Renderer
    student: Renderer
    end_of_turn: int

    def response(self, ids: Sequence[int], logprobs: Sequence[float], is_complete: bool) -> Response | None:
        text = self.teacher.response(ids, logprobs, is_complete).text
        return self.encoded(text if is_complete else text.rstrip(REPLACEMENT), is_complete)

    def encoded(self, text: str, is_complete: bool) -> Response | None:
        """The label with this text; None when the student's tokens decode to another one, or to nothing."""
        body = self.student.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        end = (self.end_of_turn,) if is_complete else ()
        response = self.student.response((*body, *end), (), is_complete)
        return response if response.ids and response.text == text else None

    def check(self) -> None:
        """Try it on a reply.

        Raises:
            ValueError: the student's tokens do not give the text back.
        """
        response = self.encoded(SAMPLE_REPLY, is_complete=True)
        if response is None or response.action is None:
            ids = self.student.tokenizer.encode(SAMPLE_REPLY, add_special_tokens=False)
            found = self.student.tokenizer.decode(ids)
            raise ValueError(
                "tokenizers: the teacher's replies are to be written in the student's tokens, but these turn "
                f"{SAMPLE_REPLY!r} into {found!r}; take a student whose tokenizer gives text back unchanged, "
                "or a teacher of the student's family"
            )


def needs_shared_tokenizer(part: object) -> bool:
    """True when this part of a method hands token ids from one model to the other.

    A part says so by its attribute `needs_shared_tokenizer`; one that does not say is taken to do it.
    """
    return bool(getattr(part, "needs_shared_tokenizer", True))


def vocabulary_difference(student: Any, teacher: Any) -> str | None:
    """How the vocabularies of two tokenizers differ, None when they are the same."""
    ours: Mapping[str, int] = student.get_vocab()
    theirs: Mapping[str, int] = teacher.get_vocab()
    if ours == theirs:
        return None
    sizes = f"{len(ours)} and {len(theirs)} tokens"
    by_id = {id: token for token, id in theirs.items()}
    for token, id in sorted(ours.items(), key=lambda item: item[1]):
        if by_id.get(id) != token:
            other = repr(by_id[id]) if id in by_id else "no token"
            return f"{sizes}, and id {id} is {token!r} in the student's, {other} in the teacher's"
    return sizes
