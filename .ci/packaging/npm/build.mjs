#!/usr/bin/env node
// Makes the npm packages of a release from its archives: one per platform with the program, and `mcp-conformance`, which
// starts the one that npm installed for the platform.
//
//   node build.mjs VERSION OWNER/REPOSITORY ARCHIVES OUTPUT

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PLATFORMS = {
  "x86_64-unknown-linux-musl": { os: "linux", cpu: "x64" },
  "aarch64-unknown-linux-musl": { os: "linux", cpu: "arm64" },
  "x86_64-apple-darwin": { os: "darwin", cpu: "x64" },
  "aarch64-apple-darwin": { os: "darwin", cpu: "arm64" },
};

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..", "..");
const [version, repository, archives, output] = process.argv.slice(2);
if (!output || !/^\d+\.\d+\.\d+/.test(version) || !/^[^/]+\/[^/]+$/.test(repository)) {
  console.error("usage: node build.mjs VERSION OWNER/REPOSITORY ARCHIVES OUTPUT");
  process.exit(2);
}

const common = {
  version,
  description: "Judges a Model Context Protocol server against every revision of the specification",
  keywords: ["mcp", "model-context-protocol", "conformance", "testing", "fuzzing"],
  license: "MIT OR Apache-2.0",
  homepage: `https://github.com/${repository}#readme`,
  bugs: `https://github.com/${repository}/issues`,
  repository: { type: "git", url: `git+https://github.com/${repository}.git` },
};

function write(folder, manifest) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE", "README.md"]) {
    copyFileSync(join(root, file), join(folder, file));
  }
}

const folder = join(output, "mcp-conformance");
const optionalDependencies = {};
for (const [target, { os, cpu }] of Object.entries(PLATFORMS)) {
  const archive = join(archives, `mcp-conformance-${target}.tar.gz`);
  if (!existsSync(archive)) {
    console.error(`there is no archive for ${target}`);
    continue;
  }
  const name = `mcp-conformance-${os}-${cpu}`;
  const platform = join(output, name);
  write(platform, { name, ...common, os: [os], cpu: [cpu], files: ["mcp-conformance"] });
  execFileSync("tar", ["-xzf", archive, "-C", platform, "mcp-conformance"]);
  chmodSync(join(platform, "mcp-conformance"), 0o755);
  // The manual page is the same for all. npm links it where the package is installed globally; it has no place for completions.
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", archive, "-C", folder, "mcp-conformance.1"]);
  optionalDependencies[name] = version;
}
if (Object.keys(optionalDependencies).length === 0) {
  process.exit(1);
}

write(folder, {
  name: "mcp-conformance",
  ...common,
  bin: { "mcp-conformance": "start.mjs" },
  man: ["mcp-conformance.1"],
  files: ["start.mjs", "mcp-conformance.1"],
  engines: { node: ">=18" },
  optionalDependencies,
});
writeFileSync(join(folder, "start.mjs"), readFileSync(join(here, "start.mjs")), { mode: 0o755 });
