// The example configurations have the intended meaning.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadConfig } from "@platform/kernel/config";
import { gateDefinition } from "../../src/config/document.ts";
import { checkLoaded } from "../../src/config/load.ts";

const folder = fileURLToPath(new URL("../../examples", import.meta.url));

/** Expected meaning of each example. */
const meanings: Record<string, unknown> = {
  "one-upstream.json": { port: 8080, routes: ["/ → http://127.0.0.1:9000"] },
  "several-upstreams.json": {
    port: 8080,
    routes: [
      "/shop → http://10.0.0.11:9000, http://10.0.0.12:9000 (least_conn)",
      "/api → http://10.0.0.21:9000 95, http://10.0.0.22:9000 5",
    ],
  },
  "hosts-and-tokens.json": {
    port: 8080,
    routes: [
      "www.example.com/ → http://127.0.0.1:9000",
      "api.example.com/ → http://127.0.0.1:9001",
    ],
  },
  "tls-both-ways.json": { port: 8443, routes: ["/ → https://backend.internal:9443"] },
};

for (const path of globSync(`${folder}/*.json`)) {
  const name = basename(path);
  test(`the example ${name} says what it is meant to say`, () => {
    const loaded = loadConfig(gateDefinition, { argv: ["--config", path], env: {} });
    assert.ok(loaded.kind === "run" && loaded.command === "");
    const { config } = checkLoaded(loaded);
    const routes = config.routes.map((route) => {
      const weighted = route.targets_weighted?.map(({ url, weight }) => `${url} ${weight}`);
      const targets = weighted ?? route.targets ?? [route.target];
      const balancer = route.load_balancer === undefined ? "" : ` (${route.load_balancer})`;
      return `${route.host ?? ""}${route.prefix} → ${targets.join(", ")}${balancer}`;
    });
    assert.deepEqual({ port: config.addr.port, routes }, meanings[name]);
    // The examples use the order and spelling of the schema, so parsing them changes nothing.
    const text = JSON.parse(readFileSync(path, "utf8")) as { routes: unknown };
    assert.deepEqual(config.routes, text.routes);
  });
}
