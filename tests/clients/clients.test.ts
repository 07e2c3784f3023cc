// Real clients in front of the gateway and real servers behind it. With PLATFORM_CLIENTS_TABLE=write
// the run also rewrites docs/guide/clients.md.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
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

const stage = new Stage();
const shown: string[] = [];
let scene: Scene;

before(async () => {
  const upstream = await stage.startUpstream("behind");
  const gateway = await stage.startGateway([{ prefix: "/", target: upstream.url }], {
    workers: 1,
    trusted_proxies: ["127.0.0.1"],
  });
  const addRoute: Scene["addRoute"] = async (route) => {
    const response = await fetch(`${gateway.url}/api/v1/routes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(route),
    });
    assert.equal(response.status, 200, await response.text());
  };
  scene = { stage, gateway, addRoute };
});

after(async () => {
  await stage[Symbol.asyncDispose]();
  if (process.env["PLATFORM_CLIENTS_TABLE"] === "write") writeTable();
});

for (const client of CLIENTS) {
  test(`${client.name} works ${client.side === "behind" ? "behind" : "in front of"} the gateway: ${client.shows}`, async (t) => {
    const version = client.readVersion();
    if (version === undefined) {
      const reason = `Debian package ${client.debianPackage} is not installed`;
      assert.notEqual(process.env["PLATFORM_TEST_PEERS"], "required", reason);
      t.skip(reason);
      return;
    }
    t.diagnostic(`${client.name} ${version}`);
    await client.exercise(scene);
    shown.push(`| ${client.name} | ${version} | ${client.side} | ${client.shows} |`);
  });
}

function writeTable(): void {
  mkdirSync(TABLE_FOLDER, { recursive: true });
  writeFileSync(
    new URL("clients.md", TABLE_FOLDER),
    [
      "# Clients and servers that the gateway was tried with",
      "",
      "Each row is a test in `tests/clients` that ran against a gateway with one worker and passed.",
      "`PLATFORM_CLIENTS_TABLE=write npm test -- tests/clients` writes this page anew.",
      "",
      "| program | version | stands | what was shown |",
      "|---|---|---|---|",
      ...shown,
      "",
    ].join("\n"),
  );
}
