"""Keeps the rows of each group, by their sort values: a key has them behind the group, so that a range is a window."""

from dataclasses import dataclass
from typing import Self, cast

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from typing_extensions import override

from statecast_domains.sections import MembersSection
from stream_processor.pipeline.compile import Compilation
from stream_processor.pipeline.fields import FieldPath, KeyPaths, Kind
from stream_processor.pipeline.pipeline import RowKey
from stream_processor.shapes.latest import LatestPipeline, mismatch
from stream_processor.steps.keys import (
    NUL,
    group_problems,
    has_group,
    key_text,
    missing,
    row_keys,
    sort_problems,
    sort_text,
    text_problems,
)

SORT_KINDS: tuple[Kind, ...] = ("timestamp", "integer", "string", "decimal")


@dataclass(frozen=True, kw_only=True)
class MembersPipeline(LatestPipeline):
    """Keeps each row under its group, `sort` value and `member` key."""

    member: KeyPaths
    sort: FieldPath

    @override
    @classmethod
    def compiled(cls, names: Compilation) -> Self:
        keep = cast(MembersSection, names.definition.keep.members)
        group = names.group()
        member = names.key("keep.members.key", keep.key)
        sort = names.path("keep.members.sort", keep.sort, SORT_KINDS)
        key = names.primary_key() or member
        if lacking := set(key.texts) - {*group.texts, str(sort), *member.texts}:
            problem = f"{member} lacks {', '.join(sorted(lacking))} of source.key: two rows could be one member"
            raise names.wrong("keep.members.key", problem)
        names.check_select(names.scope())
        return cls(**names.common, group=group, member=member, sort=sort, primary_key=key)

    @property
    @override
    def row_key(self) -> RowKey:
        name, columns = "keep.members.key", (*self.group.texts, str(self.sort), *self.member.texts)
        return RowKey(name, self.member, columns, mismatch(name, str(self.member)))

    @property
    @override
    def written_under(self) -> tuple[str, ...]:
        return (*super().written_under, str(self.sort), str(self.member))

    @override
    def key_decimals(self) -> dict[str, object]:
        members = {str(path): path.decimal.scale for path in self.member.paths if path.decimal}
        width = self.sort.decimal
        sort = {} if width is None else {f"{self.sort} (sort)": [width.width, width.scale]}
        return super().key_decimals() | members | sort

    @override
    def key_problem(self, name: str, row: Column) -> Column:
        problems = group_problems(name, row, self.group)
        for path in self.member.paths:
            problems += [*text_problems(name, row, path), missing(name, row, path)]
        problems += sort_problems(name, row, self.sort)
        return F.when(has_group(row, self.group), F.coalesce(*problems))

    @override
    def keys(self, row: Column) -> Column:
        tail = [F.lit(NUL), sort_text(row, self.sort), F.lit(NUL), key_text(row, self.member)]
        return row_keys(row, self.group, tail)
