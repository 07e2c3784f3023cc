// The pages "Identity", "Gateway" and "AI routes": both services alone.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runCommand } from "@platform/testing/platform-process";
import { findFreePort } from "../stage/process.ts";
import { readBlocks, readCommands } from "./page.ts";
import { adapt, skipWithout, typeCommands, type Terminal } from "./terminal.ts";

/** A PNG of one pixel. */
const LOGO =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const skip = skipWithout(["bash", "curl", "jq", "base64"]);

/** Types a command that stays in the foreground, and waits until the service answers. */
async function startService(
  command: string,
  terminal: Terminal,
  { url, env }: { url: string; env?: Record<string, string> },
): Promise<void> {
  const args = ["bash", "-c", `exec env ${adapt(command, terminal).trim()}`];
  const { output } = runCommand(args, { cwd: terminal.folder, ...(env && { env }) });
  const isUp = async (): Promise<boolean> => (await fetch(url).catch(() => undefined))?.ok === true;
  await waitFor(isUp, () => JSON.stringify(output()));
}

test("identity: accounts, roles, scopes, applications, programs", { skip }, async () => {
  const port = String(await findFreePort());
  const terminal: Terminal = { folder: makeFolder(), ports: [["8086", port]] };
  const [start = "", ...commands] = readCommands("identity.md");
  const env = { PLATFORM_AUTH_ADDR: `127.0.0.1:${port}` };
  await startService(start, terminal, { url: `http://127.0.0.1:${port}/readyz`, env });
  writeFileSync(join(terminal.folder, "logo.png"), Buffer.from(LOGO, "base64"));
  const users = `USERS_TOKEN=$(curl -s -H "$json" -d '{"username":"ada","password":"a fine long password"}' $api/auth/login | jq -r .access_token)
    curl -s -H "$root" -H "$json" -d '{"name":"exchanger","permissions":["tokens:exchange"]}' $api/rbac/roles
    curl -s -H "$root" -H "$json" -d '{"roles":["exchanger"]}' $api/rbac/clients/$CLIENT_ID/roles
    curl -s -X PATCH -H "$root" -H "$json" -d '{"grant_types":["client_credentials","urn:ietf:params:oauth:grant-type:token-exchange"]}' $api/auth/clients/$CLIENT_ID
    sleep 1.1 # rights of clients are at most a second old\n`;
  const exchange = commands.pop()!;
  const out = await typeCommands([...commands, users, exchange].join("\n"), terminal);
  const errors = out.match(/"type":"urn:platform:error[^\n]*/g) ?? [];
  assert.deepEqual(errors, []);
  assert.match(out, /"client_name":"Shop"/);
  assert.match(
    out.slice(-3_000),
    /"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"/,
  );
});

test("gateway: routes by file and API, a registration, keys and a replay", { skip }, async () => {
  const upstream = createServer((request, response) => response.end(`upstream ${request.url}`));
  await once(upstream.listen(0, "127.0.0.1"), "listening");
  try {
    const port = String(await findFreePort());
    const service = String((upstream.address() as AddressInfo).port);
    const ports = [
      ["8080", port],
      ["9000", service],
      ["9001", service],
    ] as const;
    const terminal: Terminal = { folder: makeFolder(), ports };
    const blocks = readBlocks("gateway.md").filter(({ language }) => language === "json");
    const [first, recorded] = [blocks[0]!, blocks.find(({ text }) => text.includes('"record"'))!];
    const config = JSON.parse(adapt(first.text, terminal)) as { routes: object[] };
    const { record, ...route } = JSON.parse(adapt(recorded.text, terminal)) as Record<
      string,
      object
    >;
    config.routes.push({ ...route, record: { ...record, percent: 100 } });
    writeFileSync(join(terminal.folder, "gate.json"), JSON.stringify(config));
    const [start = "", ...commands] = readCommands("gateway.md");
    const env = { PLATFORM_GATE_ADDR: `127.0.0.1:${port}` };
    await startService(start, terminal, { url: `http://127.0.0.1:${port}/readyz`, env });
    const request = "curl -s localhost:8080/api/items; sleep 0.5";
    const budget = readCommands("ai.md");
    const out = await typeCommands([request, ...commands, ...budget].join("\n"), terminal);
    assert.ok(!out.includes("urn:platform:error"), out);
    assert.match(out, /upstream \/shop\//);
    assert.match(out, /"prefix":"\/files"/);
    assert.match(out, /"tenant_id":"acme"/);
  } finally {
    upstream.close();
    upstream.closeAllConnections();
  }
});
