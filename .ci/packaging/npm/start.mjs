#!/usr/bin/env node
// Starts the program in the package of this platform, and ends as it does.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const name = `mcp-conformance-${process.platform}-${process.arch}`;
let program;
try {
  program = createRequire(import.meta.url).resolve(`${name}/mcp-conformance`);
} catch {
  console.error(
    `mcp-conformance: the package ${name} is not installed: either there is no program for this platform, or npm was told to ` +
      "omit optional dependencies",
  );
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A signal to the group reaches the program as well; a signal to this process alone is passed on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`mcp-conformance: ${program} cannot be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
