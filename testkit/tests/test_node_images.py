"""Images get the names in an archive under which the node shall know them."""

import io
import json
import tarfile

from testkit.kubernetes.node_images import rename_images


def archive(files: dict[str, bytes]) -> io.BytesIO:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as target:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            target.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "layer.tar"
        target.addfile(link)
    content.seek(0)
    return content


def test_an_archive_is_copied_with_other_names_of_its_images() -> None:
    tags = [["localhost/statecast-stand-in/kong:3.9"], ["statecast/ws-edge:1"]]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": each} for each in tags]).encode()
    source = archive({"layer.tar": b"a layer", "manifest.json": manifest, "index.json": b"{}", "oci-layout": b"{}"})
    renamed = io.BytesIO()

    rename_images(
        source,
        renamed,
        {"statecast-stand-in/kong:3.9": "kong:3.9", "statecast/ws-edge:1": "statecast/ws-edge:1"},
    )
    renamed.seek(0)

    with tarfile.open(fileobj=renamed) as copy:
        assert copy.getnames() == ["layer.tar", "manifest.json", "link"]
        assert copy.getmember("link").linkname == "layer.tar"
        layer, images = copy.extractfile("layer.tar"), copy.extractfile("manifest.json")
        assert layer is not None
        assert images is not None
        assert layer.read() == b"a layer"
        assert [each["RepoTags"] for each in json.load(images)] == [["kong:3.9"], ["statecast/ws-edge:1"]]
