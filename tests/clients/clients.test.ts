// Real clients in front of the gateway and real servers behind it. With PLATFORM_CLIENTS_TABLE=write
// the run also rewrites docs/guide/clients.md.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { Stage } from "../stage/stage.ts";
import { BROWSERS } from "./browser.ts";
import type { RealClient, Scene } from "./client.ts";
import { COMMAND_LINE } from "./command-line.ts";
import { LIBRARIES } from "./libraries.ts";
import { PROXIES } from "./proxies.ts";
import { SERVERS } from "./servers.ts";

const TABLE_FOLDER = new URL("../../docs/guide/", import.meta.url);
const CLIENTS: readonly RealClient[] = [
  ...COMMAND_LINE,
  ...BROWSERS,
  ...LIBRARIES,
  ...PROXIES,
  ...SERVERS,
];

const RUNTIMES = ["node", "bun"] as const;
const BUN_PATH = new URL("../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url);

const passed = new Set<string>();

for (const runtime of RUNTIMES) {
  const skip = runtime === "bun" && !existsSync(BUN_PATH) ? "Bun is not installed" : false;
  describe(`real clients and servers, the gateway on ${runtime}`, { skip }, () => {
    const stage = new Stage();
    let scene: Scene;

    before(async () => {
      scene = await setScene(stage, runtime);
    });
    after(() => stage[Symbol.asyncDispose]());

    for (const client of CLIENTS) {
      test(`${client.name} ${client.side === "behind" ? "behind it" : "in front of it"}: ${client.shows}`, async (t) => {
        const version = client.readVersion();
        if (version === undefined) {
          const reason = `Debian package ${client.debianPackage} is not installed`;
          assert.notEqual(process.env["PLATFORM_TEST_PEERS"], "required", reason);
          t.skip(reason);
          return;
        }
        t.diagnostic(`${client.name} ${version}`);
        await client.exercise(scene);
        passed.add(`${runtime} ${client.name}`);
      });
    }
  });
}

after(() => {
  if (process.env["PLATFORM_CLIENTS_TABLE"] === "write") writeTable();
});

async function setScene(stage: Stage, runtime: string): Promise<Scene> {
  const upstream = await stage.startUpstream("behind");
  const gateway = await stage.startGateway(
    [{ prefix: "/", target: upstream.url }],
    { workers: 1, trusted_proxies: ["127.0.0.1"] },
    { PLATFORM_RUNTIME: runtime },
  );
  const addRoute: Scene["addRoute"] = async (route) => {
    const response = await fetch(`${gateway.url}/api/v1/routes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(route),
    });
    assert.equal(response.status, 200, await response.text());
  };
  return { stage, gateway, addRoute };
}

function writeTable(): void {
  const rows = CLIENTS.map((client) => {
    const results = RUNTIMES.map((runtime) =>
      passed.has(`${runtime} ${client.name}`) ? "passed" : "not run or failed",
    );
    const version = client.readVersion() ?? "not installed";
    return `| ${[client.name, version, client.side, client.shows, ...results].join(" | ")} |`;
  });
  mkdirSync(TABLE_FOLDER, { recursive: true });
  writeFileSync(
    new URL("clients.md", TABLE_FOLDER),
    [
      "# Clients and servers tested with the gateway",
      "",
      "Each row is a test in `tests/clients` against a gateway with one worker, on Node and on Bun.",
      "`PLATFORM_CLIENTS_TABLE=write npm test -- tests/clients` rewrites this page.",
      "Position `in front`: the program connects to the gateway. Position `behind`: the gateway forwards to the program.",
      "",
      "| program | version | position | tested | gateway on Node | gateway on Bun |",
      "|---|---|---|---|---|---|",
      ...rows,
      "",
    ].join("\n"),
  );
}
