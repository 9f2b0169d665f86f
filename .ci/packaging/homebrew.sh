#!/usr/bin/env bash
# Writes the Homebrew formula of a release from the checksums of its archives: homebrew.sh VERSION OWNER/REPOSITORY ARCHIVES
set -euo pipefail

version=$1 repository=$2 archives=$3

# stanza <indent> <target>
stanza() {
  local archive=mcp-conformance-$2.tar.gz sum
  sum=$(cut -d ' ' -f 1 "$archives/$archive.sha256")
  printf '%surl "https://github.com/%s/releases/download/v%s/%s"\n' "$1" "$repository" "$version" "$archive"
  printf '%ssha256 "%s"\n' "$1" "$sum"
}

cat <<FORMULA
class McpConformance < Formula
  desc "Judges Model Context Protocol servers against every revision of the specification"
  homepage "https://github.com/$repository"
  version "$version"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
$(stanza '      ' aarch64-apple-darwin)
    end
    on_intel do
$(stanza '      ' x86_64-apple-darwin)
    end
  end

  on_linux do
    on_arm do
$(stanza '      ' aarch64-unknown-linux-musl)
    end
    on_intel do
$(stanza '      ' x86_64-unknown-linux-musl)
    end
  end

  def install
    bin.install "mcp-conformance"
    man1.install "mcp-conformance.1"
    bash_completion.install "completions/mcp-conformance.bash" => "mcp-conformance"
    zsh_completion.install "completions/mcp-conformance.zsh" => "_mcp-conformance"
    fish_completion.install "completions/mcp-conformance.fish"
  end

  test do
    assert_match "PASS", shell_output("#{bin}/mcp-conformance -q --select 'tools/list/*' -- #{bin}/mcp-conformance serve")
  end
end
FORMULA
