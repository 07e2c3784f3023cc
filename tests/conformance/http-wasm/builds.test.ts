// The committed modules are what their sources and commands build. A long form: PLATFORM_GUEST_BUILDS=1, with the compilers of
// `tools/install-peers guests`, and AssemblyScript if it is in node_modules.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { compileHttpModule } from "@platform/wasm/http";
import { askVersion, findProgram } from "../../stage/program.ts";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
const isWanted = process.env["PLATFORM_GUEST_BUILDS"] === "1";

/** The compilers with which the committed modules were built; others build others. */
const COMPILERS = {
  // Not the one of rustup, which may come first in PATH.
  rustc: { path: "/usr/bin/rustc", version: "1.63.0" },
  clang: { path: findProgram("clang") ?? "clang", version: "14.0.6" },
  asc: { path: join(REPOSITORY, "node_modules/assemblyscript/bin/asc.js"), version: "0.28.20" },
} as const;

/** The commands of the READMEs of `examples/middleware` and `examples/guests`, and of the sources in `guests`, without the names of files. */
const COMMANDS = {
  sample: ["asc", "--runtime stub -O3 --shrinkLevel 2 --use abort= --exportStart _initialize"],
  objectSample: ["asc", "--runtime stub -O3 --shrinkLevel 2 --use abort="],
  script: ["asc", "--runtime stub -O3 --use abort= --exportStart _initialize"],
  c: [
    "clang",
    "--target=wasm32 -Os -nostdlib -fno-builtin -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=16384 -Wl,--initial-memory=131072",
  ],
  scriptC: ["clang", "--target=wasm32 -O2 -nostdlib -fno-builtin -Wl,--no-entry -Wl,--strip-all"],
  wasi: ["clang", "--target=wasm32-wasi --sysroot=/usr -O2 -Wl,--strip-all"],
  objectC: ["clang", "--target=wasm32-wasi -O2 -Wl,--strip-all"],
  rust: [
    "rustc",
    "--edition 2021 --target wasm32-unknown-unknown --crate-type cdylib -C opt-level=s -C panic=abort -C lto -C strip=symbols -C link-arg=-zstack-size=32768",
  ],
} as const satisfies Record<string, readonly [keyof typeof COMPILERS, string]>;

const SAMPLES = "examples/middleware";
/** Modules for objects instead of requests. */
const OBJECTS = "examples/guests";
const GUESTS = "tests/conformance/http-wasm/guests";
const builds: [output: string, source: string, command: keyof typeof COMMANDS][] = [
  [`${SAMPLES}/header-rules.wasm`, `${SAMPLES}/assembly/header-rules.ts`, "sample"],
  [`${SAMPLES}/banner.wasm`, `${SAMPLES}/assembly/banner.ts`, "sample"],
  [`${SAMPLES}/redact.wasm`, `${SAMPLES}/c/redact.c`, "c"],
  [`${SAMPLES}/webhook.wasm`, `${SAMPLES}/rust/webhook.rs`, "rust"],
  [`${OBJECTS}/csv2json.wasm`, `${OBJECTS}/c/csv2json.c`, "objectC"],
  [`${OBJECTS}/thumbnail.wasm`, `${OBJECTS}/c/thumbnail.c`, "objectC"],
  [`${OBJECTS}/redact-c.wasm`, `${OBJECTS}/c/redact.c`, "objectC"],
  [`${OBJECTS}/redact-rust.wasm`, `${OBJECTS}/rust/redact.rs`, "rust"],
  [`${OBJECTS}/redact.wasm`, `${OBJECTS}/assembly/redact.ts`, "objectSample"],
  [`${GUESTS}/script-as.wasm`, `${GUESTS}/assembly/script.ts`, "script"],
  [`${GUESTS}/script-c.wasm`, `${GUESTS}/script.c`, "scriptC"],
  [`${GUESTS}/wasi-c.wasm`, `${GUESTS}/wasi.c`, "wasi"],
];
for (const [output, source, command] of builds) {
  const [name, options] = COMMANDS[command];
  const { path, version } = COMPILERS[name];
  const isThere = existsSync(path);
  const skip = isWanted
    ? !isThere && `${name} is not installed`
    : "PLATFORM_GUEST_BUILDS is not set";
  test(`${output} is what ${name} builds`, { skip }, (t) => {
    const folder = mkdtempSync(join(tmpdir(), "guest-build-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const built = join(folder, "built.wasm");
    const isScript = name === "asc";
    const flag = isScript ? "--outFile" : "-o";
    const args = [...options.split(" "), flag, built, source];
    execFileSync(isScript ? process.execPath : path, isScript ? [path, ...args] : args, {
      cwd: REPOSITORY,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const bytes = readFileSync(built);
    if (!output.startsWith(OBJECTS)) compileHttpModule(bytes);
    const found = isScript
      ? askVersion(process.execPath, [path, "--version"])
      : askVersion(path, ["--version"]);
    if (found !== version) t.diagnostic(`${name} ${found} instead of ${version}: not compared`);
    else assert.ok(bytes.equals(readFileSync(join(REPOSITORY, output))), "other bytes");
  });
}
