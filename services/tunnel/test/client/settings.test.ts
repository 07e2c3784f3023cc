// The client's file: YAML or JSON, below the command line, with faults named by their place.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { resolveSettings, SettingsError, type ClientSettings } from "../../src/client/settings.ts";
import { tunnelDefinition } from "../../src/config.ts";
import { makeFolder } from "../fixture/programs.ts";
import { Cleanup } from "../fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());
const folder = makeFolder(cleanup);

function resolve(file: string, content: string, args: string[] = [], env = {}): ClientSettings {
  const path = join(folder, file);
  writeFileSync(path, content);
  const argv = ["client", "--config", path, ...args];
  const loaded = loadConfig(tunnelDefinition, { argv, env });
  if (loaded.kind !== "run" || loaded.command !== "client") throw new Error("not a client");
  return resolveSettings(loaded.options, undefined);
}

const RELAY = "wss://tunnels.example.net/ws/connect";

test("YAML and JSON files mean the same", () => {
  const yaml = `relay: ${RELAY}\ntoken: secret-token\ntunnels:\n  - port: "3000"\n    subdomain: demo\n`;
  const json = JSON.stringify({
    relay: RELAY,
    token: "secret-token",
    tunnels: [{ port: "3000", subdomain: "demo" }],
  });
  const settings = resolve("tunnels.yaml", yaml);
  assert.deepEqual(resolve("tunnels.json", json), settings);
  assert.equal(settings.relay, RELAY);
  assert.equal(settings.token, "secret-token");
  assert.equal(settings.tunnels[0]?.subdomain, "demo");
});

test("the command line and the environment take precedence over the file", () => {
  const json = JSON.stringify({ relay: RELAY, token: "of-the-file", tunnels: [{ port: 1 }] });
  const other = "ws://other.example.net/ws/connect";
  assert.equal(resolve("a.json", json, ["--relay", other, "--token", "typed"]).relay, other);
  assert.equal(resolve("a.json", json, ["--token", "typed"]).token, "typed");
  assert.equal(resolve("a.json", json, [], { PLATFORM_TUNNEL_RELAY: other }).relay, other);
  const bare = JSON.stringify({ tunnels: [{ port: 1 }] });
  assert.equal(resolve("b.json", bare).relay, "ws://localhost:8443/ws/connect");
});

const FAULTS: readonly (readonly [string, string, RegExp])[] = [
  ["an alias", "tunnels: &a\n  - port: 1\nrelay: *a\n", /aliases .* are not supported/],
  ["a key twice", "tunnels: []\ntunnels: []\n", /unique/],
  ["no tunnels", "tunnels: []\n", /tunnels: /],
  ["an unknown key", "tunnels: [{port: 1, subdomian: x}]\n", /tunnels\.0: .*subdomian/],
  ["neither port nor target", "tunnels: [{subdomain: x}]\n", /needs either port or target/],
  ["a relay that is no WebSocket", "relay: http://x\ntunnels: [{port: 1}]\n", /relay: /],
];

for (const [name, content, message] of FAULTS) {
  test(`${name} in the file is refused with its place`, () => {
    assert.throws(
      () => resolve("fault.yaml", content),
      (error) => error instanceof SettingsError && message.test(error.message),
    );
  });
}
