#!/usr/bin/env bash
# Makes the two base images that the Dockerfiles build on, where no image registry can be reached: Debian 12 by debootstrap,
# with Python 3.11, and on it Java 17 with Maven. README.md says how they are used.
#
#     sudo infra/images/base-images.sh [DIRECTORY]
#
# It needs root, debootstrap, and docker or podman (CONTAINER_ENGINE chooses). DIRECTORY keeps Debian's files for the next
# time; without it they are in a temporary one. MIRROR and SECURITY_MIRROR say where Debian is taken from; without them it is
# where this machine takes its own Debian 12 from.
set -euo pipefail

engine=${CONTAINER_ENGINE:-$(command -v podman || command -v docker)}

source_of() {
    { apt-get indextargets --format '$(CODENAME) $(REPO_URI)' || true; } 2>/dev/null |
        awk -v codename="$1" '$1 == codename && !found++ { print $2 }'
}

mirror=${MIRROR:-$(source_of bookworm)}
security_mirror=${SECURITY_MIRROR:-$(source_of bookworm-security)}
: "${mirror:?set MIRROR to a mirror of Debian: this machine has none of Debian 12}"
: "${security_mirror:?set SECURITY_MIRROR to a mirror of the security updates of Debian: this machine has none of Debian 12}"
python_image=localhost/statecast/python:3.11-bookworm
maven_image=localhost/statecast/maven:3.8-bookworm
certificates=/etc/ssl/certs/ca-certificates.crt

if [[ $# -gt 0 ]]; then
    directory=$1
else
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
fi
root=$directory/root

in_root() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" "$@"
}

if [[ ! -e $root/.complete ]]; then
    debootstrap --variant=minbase --include=ca-certificates,netbase,python3,python3-pip,python3-venv,tzdata bookworm "$root" "$mirror"
    touch "$root/.complete"
fi
cat > "$root/etc/apt/sources.list" <<SOURCES
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb $security_mirror bookworm-security main
SOURCES
# Authorities that this machine trusts on top of Debian's, such as a company's proxy.
find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \;
# Packages that a Dockerfile installs leave neither archives nor an index in its layer, as in the public images.
cat > "$root/etc/apt/apt.conf.d/no-cache" <<'APT'
Dir::Cache { pkgcache ""; srcpkgcache ""; };
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };
APT
in_root update-ca-certificates
in_root apt-get -q update
in_root apt-get -q -y upgrade
in_root apt-get clean
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/usr/lib/python3*/EXTERNALLY-MANAGED
find "$root/usr/share/doc" "$root/usr/share/man" "$root/var/log" -type f -delete
mkdir -p "$root/usr/share/man/man1" # Java's package puts links there
for name in python python3; do ln -sf /usr/bin/python3.11 "$root/usr/local/bin/$name"; done
ln -sf /usr/bin/pip3 "$root/usr/local/bin/pip"

tar -C "$root" --numeric-owner --exclude='./dev/*' --exclude='./proc/*' --exclude=./.complete -c . | "$engine" import \
    --change 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'ENV LANG=C.UTF-8' \
    --change "ENV PIP_CERT=$certificates" --change "ENV SSL_CERT_FILE=$certificates" --change 'CMD ["python3"]' - "$python_image"
# Unquoted on purpose: these are flags.
# shellcheck disable=SC2086
"$engine" build ${IMAGE_BUILD_FLAGS:-} -t "$maven_image" - <<DOCKERFILE
FROM $python_image
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils ca-certificates-java maven openjdk-17-jdk-headless \
    && rm -rf /var/lib/apt/lists/*
DOCKERFILE
echo "PYTHON_IMAGE=$python_image MAVEN_IMAGE=$maven_image"
