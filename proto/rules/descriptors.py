"""The message types that can be named: those of the contract, and those of a directory that a team mounts.

The directory holds `.proto` files, which are compiled when they are read, and serialized FileDescriptorSets (`.binpb`),
such as `protoc --descriptor_set_out` and `buf build` write. Both may import files of the contract.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import cast

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

_CONTRACT = "statecast"
_WELL_KNOWN = "google/protobuf/"
_COMPILE_TIMEOUT_S = 60

_Sources = dict[str, tuple[FileDescriptorProto, str]]
"""Descriptors by the names of their files, each with where it is from, for errors."""


class DescriptorsError(ValueError):
    """A mounted directory cannot be used; the text names the file, and the line where there is one."""


class MessageTypes:
    """The messages of the contract and of one directory."""

    def __init__(self, descriptor_set: bytes) -> None:
        """Takes a serialized FileDescriptorSet, imports before the files that import them."""
        self.descriptor_set = descriptor_set
        self._files = FileDescriptorSet.FromString(descriptor_set).file

    @classmethod
    def read(cls, directory: Path | None = None) -> "MessageTypes":
        """Returns the contract's messages and those of the directory, if one is given. Raises DescriptorsError."""
        return cls(_contract() if directory is None else _with_mounted(_contract(), directory))

    @cached_property
    def fields(self) -> Mapping[str, frozenset[str]]:
        """The names of the fields of each message, nested ones too, by its full name."""
        return {name: frozenset(field.name for field in message.field) for name, message in self._messages()}

    @property
    def rows(self) -> frozenset[str]:
        """The full names of the messages that are not Google's, which are those to suggest."""
        return frozenset(name for name in self.fields if not name.startswith("google."))

    def message_class(self, name: str) -> type[Message]:
        """Returns the class of a message, nested ones too: of the contract's the generated one.

        Raises KeyError for no such.
        """
        if name not in self.rows:
            raise KeyError(name)
        message = self._pool.FindMessageTypeByName(name)
        if message.file.name not in _files_of_contract():
            return GetMessageClass(message)
        module = import_module(message.file.name.removesuffix(".proto").replace("/", ".") + "_pb2")
        return cast(type[Message], attrgetter(name.removeprefix(f"{message.file.package}."))(module))

    @cached_property
    def _pool(self) -> DescriptorPool:
        return _pool_of(self._files)

    def _messages(self) -> Iterator[tuple[str, DescriptorProto]]:
        named = [(_full_name(file, message.name), message) for file in self._files for message in file.message_type]
        for name, message in named:  # it grows by the nested ones on the way
            named += [(f"{name}.{nested.name}", nested) for nested in message.nested_type]
            yield name, message


@cache
def _contract() -> bytes:
    return (files(_CONTRACT) / "contract.binpb").read_bytes()


@cache
def _files_of_contract() -> frozenset[str]:
    """Names the files with installed generated code; a file that is mounted below statecast/ has none."""
    return frozenset(file.name for file in FileDescriptorSet.FromString(_contract()).file)


def _with_mounted(contract: bytes, directory: Path) -> bytes:
    if not directory.is_dir():
        raise DescriptorsError(f"{directory} is not a directory that can be read")
    known: _Sources = {each.name: (each, "the contract") for each in FileDescriptorSet.FromString(contract).file}
    for path in _files_of(directory, ".binpb"):
        _add(known, _read_set(path), str(path))
    sources = _files_of(directory, ".proto")
    if sources:
        _add(known, _compiled(directory, sources, known), str(directory))
    ordered = _in_order(known)
    _check_names(ordered, known)
    try:
        _pool_of(ordered)
    except TypeError as error:
        raise DescriptorsError(f"{directory}: {' '.join(str(error).split())}") from error
    return FileDescriptorSet(file=ordered).SerializeToString()


def _files_of(directory: Path, suffix: str) -> list[Path]:
    """Returns the files below the directory, except hidden ones: a ConfigMap mounts its files twice, once hidden."""
    paths = (path for path in directory.rglob(f"*{suffix}") if path.is_file())
    return sorted(path for path in paths if not any(p.startswith(".") for p in path.relative_to(directory).parts))


def _read_set(path: Path) -> list[FileDescriptorProto]:
    try:
        content = list(FileDescriptorSet.FromString(path.read_bytes()).file)
    except OSError as error:
        raise DescriptorsError(f"{path} cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise DescriptorsError(f"{path} is not a serialized FileDescriptorSet") from error
    if not content or not all(file.name for file in content):
        raise DescriptorsError(f"{path} is not a serialized FileDescriptorSet: it names no file")
    return content


def _compiled(directory: Path, sources: Iterable[Path], known: _Sources) -> list[FileDescriptorProto]:
    """Compiles .proto files; also returns their imports. Raises DescriptorsError with the file and the line."""
    if find_spec("grpc_tools") is None:
        raise DescriptorsError(f"{directory} has .proto files: install grpcio-tools, or put descriptor sets there")
    well_known = files("grpc_tools") / "_proto"
    names = [path.relative_to(directory).as_posix() for path in sources]
    names = [name for name in names if not (name.startswith(_WELL_KNOWN) and (well_known / name).is_file())]
    for name in names:
        if name in known:
            raise DescriptorsError(f"{directory / name}: {known[name][1]} has a file of that name: rename one")
        if name.startswith(("-", "@")):
            raise DescriptorsError(f"{directory / name}: protoc takes a name with {name[0]} for an option: rename it")
    if not names:
        return []
    # Through pipes, because the file system of a container may be read-only. A process of its own shows its errors.
    command = [sys.executable, "-m", "grpc_tools.protoc", "--descriptor_set_in=/dev/stdin", "--include_imports"]
    command += [f"--proto_path={directory}", f"--proto_path={well_known}", "--descriptor_set_out=/dev/stdout", *names]
    imports = FileDescriptorSet(file=[file for file, _ in known.values()]).SerializeToString()
    try:
        run = subprocess.run(command, input=imports, capture_output=True, timeout=_COMPILE_TIMEOUT_S, check=False)  # noqa: S603  its own program
    except subprocess.TimeoutExpired as error:
        raise DescriptorsError(f"{directory}: protoc took more than {_COMPILE_TIMEOUT_S} s") from error
    if run.returncode != 0:
        lines = run.stderr.decode(errors="replace").split("\n")
        raise DescriptorsError("; ".join(line.strip() for line in lines if line.strip() and ": warning: " not in line))
    return list(FileDescriptorSet.FromString(run.stdout).file)


def _add(known: _Sources, added: Iterable[FileDescriptorProto], source: str) -> None:
    """Adds files. One that is there already must be the same; Google's own stay as they were first met."""
    for file in added:
        file.ClearField("source_code_info")
        earlier = known.get(file.name)
        if earlier is None:
            known[file.name] = (file, source)
        elif not file.name.startswith(_WELL_KNOWN) and _comparable(earlier[0]) != _comparable(file):
            raise DescriptorsError(f"{source}: {file.name} differs from that of {earlier[1]}: remove one of them")


def _comparable(file: FileDescriptorProto) -> bytes:
    """Removes JSON names that follow from the fields' names, since only some compilers write them."""
    copy = FileDescriptorProto.FromString(file.SerializeToString())
    messages = list(copy.message_type)
    for message in messages:
        messages += message.nested_type
        for field in message.field:
            if field.json_name == _json_name(field.name):
                field.ClearField("json_name")
    return copy.SerializeToString(deterministic=True)


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _in_order(known: _Sources) -> list[FileDescriptorProto]:
    """Returns the files, each after those that it imports. Raises DescriptorsError for an import that is nowhere."""
    ordered: dict[str, FileDescriptorProto] = {}

    def visit(name: str, within: tuple[str, ...]) -> None:
        if name in ordered:
            return
        if name in within:
            raise DescriptorsError(f"{known[name][1]}: {' imports '.join((*within, name))}")
        file, source = known[name]
        for imported in file.dependency:
            if imported not in known:
                raise DescriptorsError(
                    f"{source}: {name} imports {imported}, which is not there: write the set with --include_imports"
                )
            visit(imported, (*within, name))
        ordered[name] = file

    for name in known:
        visit(name, ())
    return list(ordered.values())


def _check_names(ordered: Iterable[FileDescriptorProto], known: _Sources) -> None:
    owners: dict[str, str] = {}
    for file in ordered:
        source = known[file.name][1]
        place = f"{file.name} of {source}"
        elements = [each.name for each in file.message_type] + [each.name for each in file.enum_type]
        elements += [each.name for each in file.service] + [each.name for each in file.extension]
        for name in (_full_name(file, element) for element in elements):
            if name in owners:
                raise DescriptorsError(f"{name} is declared twice: in {owners[name]} and in {place}; rename one")
            owners[name] = place


def _pool_of(ordered: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in ordered:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _full_name(file: FileDescriptorProto, name: str) -> str:
    return f"{file.package}.{name}" if file.package else name
