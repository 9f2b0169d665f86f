#!/usr/bin/env python3
"""Makes the wheels of a release from its archives, one per platform: `pip install` puts the program on the PATH, and its manual
page and completions into `share` of the environment.

    python3 build.py VERSION OWNER/REPOSITORY ARCHIVES OUTPUT

Only the standard library is needed.
"""

import base64
import hashlib
import pathlib
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

# A program that is linked statically runs with either C library.
TAGS = {
    "x86_64-unknown-linux-musl": "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "aarch64-unknown-linux-musl": "py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "x86_64-apple-darwin": "py3-none-macosx_10_12_x86_64",
    "aarch64-apple-darwin": "py3-none-macosx_11_0_arm64",
}


# Where the files of an archive belong in an environment, with their modes.
PLACES = {
    "mcp-conformance": ("scripts/mcp-conformance", 0o755),
    "mcp-conformance.1": ("data/share/man/man1/mcp-conformance.1", 0o644),
    "completions/mcp-conformance.bash": ("data/share/bash-completion/completions/mcp-conformance", 0o644),
    "completions/mcp-conformance.zsh": ("data/share/zsh/site-functions/_mcp-conformance", 0o644),
    "completions/mcp-conformance.fish": ("data/share/fish/vendor_completions.d/mcp-conformance.fish", 0o644),
}


def expanded(tag):
    """Each single tag that a compressed one stands for."""
    python, abi, platforms = tag.split("-")
    return [f"{python}-{abi}-{platform}" for platform in platforms.split(".")]


def build(version, repository, archive, tag, output):
    """Writes one wheel."""
    with tarfile.open(archive) as tar:
        contents = {name: tar.extractfile(name).read() for name in PLACES}
    info = f"mcp_conformance-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: mcp-conformance\nVersion: {version}\n"
        "Summary: Judges a Model Context Protocol server against every revision of the specification\n"
        f"Project-URL: Homepage, https://github.com/{repository}\n"
        f"Project-URL: Issues, https://github.com/{repository}/issues\n"
        "Keywords: mcp,model-context-protocol,conformance,testing,fuzzing\n"
        "License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n"
        "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n" + (ROOT / "README.md").read_text("utf-8")
    )
    wheel = "Wheel-Version: 1.0\nGenerator: mcp-conformance\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: {single}\n" for single in expanded(tag))
    files = [(f"mcp_conformance-{version}.data/{place}", contents[name], mode) for name, (place, mode) in PLACES.items()]
    files += [(f"{info}/METADATA", metadata.encode(), 0o644), (f"{info}/WHEEL", wheel.encode(), 0o644)]
    files += [(f"{info}/licenses/{name}", (ROOT / name).read_bytes(), 0o644) for name in ("LICENSE-MIT", "LICENSE-APACHE")]
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in files)
    files.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644))
    path = output / f"mcp_conformance-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive_file:
        for name, data, mode in files:
            # A fixed date gives the same bytes for the same program.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive_file.writestr(entry, data)
    print(path)


def digest(data):
    """The SHA-256 of data as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main():
    """Builds a wheel from each archive that is there."""
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    version, repository = sys.argv[1:3]
    archives, output = pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    output.mkdir(parents=True, exist_ok=True)
    found = {archives / f"mcp-conformance-{target}.tar.gz": tag for target, tag in TAGS.items()}
    found = {archive: tag for archive, tag in found.items() if archive.exists()}
    if not found:
        sys.exit(f"there is no archive in {archives}")
    for archive, tag in found.items():
        build(version, repository, archive, tag, output)


main()
