"""A backup on disk: `<directory>/<store>/<partition>`, each with the files of one checkpoint and a manifest of them."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from google.protobuf import json_format

from query_service.errors import BackupError, StoreFailedError
from query_service.storage import store_keys
from query_service.storage.checkpoints import ORIGIN, is_file_name
from query_service.storage.store_directory import StoreDirectory
from query_service.storage.stores_file import StoreDefinition
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1.backup_pb2 import BackedUpFile, BackupManifest

MANIFEST = "manifest.json"
_VERSION = 1
_COPY_BYTES = 1 << 20


def write_manifest(
    directory: Path, store: str, partition: int, checkpoint: shard.CreateCheckpointResponse, taken_ms: int
) -> BackupManifest:
    """Writes a manifest of the checkpoint's files into their directory, and returns it. Raises OSError."""
    manifest = BackupManifest(
        version=_VERSION,
        store=store,
        partition=partition,
        next_offset=checkpoint.next_offset,
        taken_ms=taken_ms,
        files={
            file.name: BackedUpFile(size=file.size, sha256=_sha256(directory / file.name)) for file in checkpoint.files
        },
        **{name: getattr(checkpoint, name) for name in ORIGIN},
    )
    text = json_format.MessageToJson(
        manifest, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    (directory / MANIFEST).write_text(text + "\n")
    return manifest


def restore(
    backup: Path, directory: StoreDirectory, stores: Sequence[StoreDefinition], resume_limit_ms: int
) -> list[BackupManifest]:
    """Places all partitions of a backup in a data directory that has none of them, or raises BackupError.

    All manifests are checked before anything is placed, and each file again while it is copied. The instance checks
    later whether the topic is still the one of the backup, and sets aside the partitions of another one.
    """
    manifests = [_read_manifest(path) for path in sorted(backup.glob(f"*/*/{MANIFEST}"))]
    if not manifests:
        raise BackupError(f"{backup} contains no partition of a backup: name the directory that `backup` has written")
    definitions = {definition.name: definition for definition in stores}
    for manifest in manifests:
        _check(manifest, definitions.get(manifest.store), directory, resume_limit_ms)
    for manifest in manifests:
        definition, source = definitions[manifest.store], backup / manifest.store / str(manifest.partition)
        try:
            with directory.unfinished(definition, manifest.partition) as unfinished:
                for name, file in manifest.files.items():
                    _copy(source / name, unfinished / name, file)
                directory.place(unfinished, definition, manifest.partition)
        except (OSError, StoreFailedError) as error:
            raise BackupError(f"{source} cannot be restored: {error}") from error
    return manifests


def _read_manifest(path: Path) -> BackupManifest:
    try:
        manifest = json_format.Parse(path.read_text(), BackupManifest(), ignore_unknown_fields=True)
    except (OSError, ValueError, json_format.ParseError) as error:
        raise BackupError(f"{path} is not a manifest of a backup: {error}") from error
    if manifest.version != _VERSION:
        raise BackupError(f"{path} has version {manifest.version}, not {_VERSION}: restore it with its own release")
    if path.parent.parent.name != manifest.store or path.parent.name != str(manifest.partition):
        raise BackupError(f"{path} is that of {manifest.store}/{manifest.partition}: move it back to its place")
    if not all(map(is_file_name, manifest.files)):
        raise BackupError(f"{path} names a file outside of its directory")
    return manifest


def _check(
    manifest: BackupManifest, definition: StoreDefinition | None, directory: StoreDirectory, resume_limit_ms: int
) -> None:
    """Raises BackupError for a partition that the instance could not go on from."""
    where = f"the backup of {manifest.store}/{manifest.partition}"
    if definition is None or definition.in_memory:
        raise BackupError(f"{where} belongs to a store that the stores file does not keep on disk")
    age_ms = directory.wall_ms() - manifest.taken_ms
    if age_ms > resume_limit_ms:
        raise BackupError(
            f"{where} is {age_ms // 1000} s old, RESUME_LIMIT_S is {resume_limit_ms // 1000}: read the topic"
        )
    wanted = {"topic": definition.topic, "format": store_keys.FORMAT, "rules": store_keys.rules_of(definition)}
    for name, value in wanted.items():
        if getattr(manifest, name) != value:
            raise BackupError(f"{where} has {name} {getattr(manifest, name)!r}, this instance {value!r}")
    if directory.has(definition, manifest.partition):
        raise BackupError(f"{where} cannot be restored: the data directory has that partition, remove it first")


def _copy(source: Path, target: Path, expected: BackedUpFile) -> None:
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading, target.open("wb") as writing:
        while data := reading.read(_COPY_BYTES):
            digest.update(data)
            size += len(data)
            writing.write(data)
    if (size, digest.hexdigest()) != (expected.size, expected.sha256):
        raise BackupError(f"{source} differs from its manifest: it was changed after the backup")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_directory(finished: Path, target: Path) -> None:
    """Moves a directory to where another one may be, which it replaces. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    former = finished.with_name(f"{finished.name}.former")
    if target.exists():
        target.rename(former)
    finished.rename(target)
    shutil.rmtree(former, ignore_errors=True)
