// The page "Middleware": a gateway and a module of the samples, registered and used by the commands of the page.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeFolder } from "@platform/testing/platform-process";
import { waitFor } from "@platform/testing/wait";
import { readCommands } from "./page.ts";
import { skipWithout, typeCommands } from "./terminal.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const SAMPLE = join(REPOSITORY, "examples/middleware/header-rules.wasm");

test(
  "a module is registered and used on a route",
  { skip: skipWithout(["bash", "curl"]) },
  async (t) => {
    const folder = makeFolder();
    copyFileSync(SAMPLE, join(folder, "hello.wasm"));
    const upstream = createServer((_request, response) => response.end("hello"));
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    t.after(() => upstream.close());
    const { port } = upstream.address() as AddressInfo;
    const [start = "", use = ""] = readCommands("middleware.md");
    const [write = ""] = start.split("\n");
    await typeCommands(write.replace(":8080", "127.0.0.1:0"), {
      folder,
      ports: [["9000", `${port}`]],
    });

    const gate = spawn(process.execPath, [join(REPOSITORY, "bin/platform-gate.js")], {
      cwd: folder,
    });
    t.after(() => gate.kill());
    let log = "";
    gate.stdout.on("data", (piece: Buffer) => (log += piece.toString()));
    const findPort = () => /"name":"http","host":"127\.0\.0\.1","port":(\d+)/.exec(log)?.[1];
    await waitFor(() => findPort() !== undefined);
    const ports: [string, string][] = [
      ["8080", findPort()!],
      ["9000", `${port}`],
    ];
    const out = await typeCommands(use, { folder, ports });
    assert.match(
      out,
      /^middleware hello compiled and registered: sha256 [0-9a-f]{64}, \d+ bytes$/m,
    );
    assert.match(out, /HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nhello$/);
  },
);
