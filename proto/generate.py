"""Generates the typed Python package of the contract from the .proto files, and adds the rules that belong to it."""

import argparse
import shutil
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTO_ROOT = Path(__file__).resolve().parent
RULES = PROTO_ROOT / "rules"
DESCRIPTOR_SET = Path("statecast") / "contract.binpb"
COMMENTED_SET = Path("statecast") / "commented.binpb"

PACKAGE_INIT = '''"""The Protobuf contract of Statecast, with its descriptor set and the rules that belong to it.

All is generated but the rules: the modules of `proto/rules`.
"""

from importlib.resources import files


def descriptor_set() -> bytes:
    """The serialized google.protobuf.FileDescriptorSet of the whole contract, imports included."""
    return (files(__name__) / "contract.binpb").read_bytes()


def commented_descriptor_set() -> bytes:
    """The same with the comments of the .proto files, for documents made from them; several times as large."""
    return (files(__name__) / "commented.binpb").read_bytes()
'''


def generate(out: Path) -> None:
    """Writes the package `statecast` into `out`, which is emptied first. Raises RuntimeError when protoc fails."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "statecast").mkdir(parents=True)
    sources = sorted(str(path.relative_to(PROTO_ROOT)) for path in (PROTO_ROOT / "statecast").rglob("*.proto"))
    _compile(
        sources,
        f"--python_out={out}",
        f"--mypy_out=readable_stubs,quiet:{out}",
        f"--grpc_python_out={out}",
        f"--mypy_grpc_out=quiet:{out}",
        f"--descriptor_set_out={out / DESCRIPTOR_SET}",
        "--include_imports",
    )
    _compile(sources, f"--descriptor_set_out={out / COMMENTED_SET}", "--include_imports", "--include_source_info")
    (out / "statecast" / "__init__.py").write_text(PACKAGE_INIT)
    (out / "statecast" / "py.typed").touch()
    for rules in RULES.glob("*.py"):
        shutil.copy(rules, out / "statecast")
    for folder in {(out / source).parent for source in sources}:
        for package in (folder, folder.parent):
            (package / "__init__.py").touch()


def _compile(sources: list[str], *options: str) -> None:
    paths = [f"--proto_path={PROTO_ROOT}", f"--proto_path={files('grpc_tools') / '_proto'}"]
    status = protoc.main(["protoc", *paths, *options, *sources])
    if status != 0:
        raise RuntimeError(f"protoc failed with status {status} on the contract in {PROTO_ROOT}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=PROTO_ROOT / "build" / "python")
    generate(parser.parse_args().out)
