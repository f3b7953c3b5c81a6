"""The steps of a watch: for each row of the step before, a step watches a key or range of a current store."""

from dataclasses import replace
from typing import NamedTuple

from google.protobuf.struct_pb2 import Value

from statecast.push.v2 import push_pb2
from statecast_service.settings import suggest
from ws_edge.errors import MalformedFrameError
from ws_edge.model.questions import Question, question_of
from ws_edge.model.stores import FindStore, Store, check_key_part

MAX_STEPS = 3
ANY_GROUP = "group"


class Step(NamedTuple):
    """A key or range that is watched for each row of the step before."""

    any_question: Question
    """The question of the step, for any group."""
    field: str
    """The field with the group, in the row of the step before."""
    fields: tuple[str, ...] = ()
    """The fields of its rows that are sent; none for all."""

    @property
    def store(self) -> Store:
        return self.any_question.store

    def question(self, group: str) -> Question:
        """Returns the question for a row that names the group."""
        return replace(self.any_question, group=group)


def step_of(before: Store, asked: push_pb2.Step, find: FindStore) -> Step:
    """Returns a step after rows of `before`, with all fields.

    Raises MalformedFrameError for an invalid step, and UnknownStoreError.
    """
    store, field = find(asked.store), asked.group_field
    if not field or (before.message is not Value and field not in before.text_fields):
        hint = suggest(field, before.text_fields)
        raise MalformedFrameError(f"group_field: a row of {before.name} has no text field {field[:80]!r}; {hint}")
    check_key_part("group_field", field)  # of JSON it may be any text
    question = question_of(store, ANY_GROUP, asked)
    question.check()
    return Step(question, field)
