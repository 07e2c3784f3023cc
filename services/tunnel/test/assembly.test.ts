// Each part of the relay starts alone, on the parts below it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { openPartsAlone } from "@platform/testing/parts";
import { createRelayApi } from "../src/assembly/api.ts";
import { openCallers } from "../src/assembly/callers.ts";
import { openClients } from "../src/assembly/clients.ts";
import { openNames } from "../src/assembly/names.ts";
import { openTraffic } from "../src/assembly/traffic.ts";
import { tunnelDefinition, type RelayConfig } from "../src/config.ts";

function openParts(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  return openPartsAlone<RelayConfig>(t, tunnelDefinition, {
    argv: ["server"],
    env: (folder) => ({
      PLATFORM_TUNNEL_ADDR: "127.0.0.1:0",
      PLATFORM_TUNNEL_DOMAIN: "tunnels.example",
      PLATFORM_TUNNEL_DATA_DIR: folder,
      ...env,
    }),
  });
}

const CLAIM = {
  subject: "ann",
  kind: "http",
  target: "127.0.0.1:3000",
  authRequired: false,
  subdomain: "shop",
} as const;

test("names: they belong to one subject, also after the part was opened again", async (t) => {
  const first = openParts(t);
  const { store } = await openNames(first.config, first.service, undefined);
  await store.claim(CLAIM, () => false);
  const again = openParts(t, { PLATFORM_TUNNEL_DATA_DIR: first.folder });
  await first.lifecycle.close();
  const { store: reopened } = await openNames(again.config, again.service, undefined);
  assert.equal(reopened.findLabel("shop")?.subject, "ann");
  await assert.rejects(
    reopened.claim({ ...CLAIM, subject: "bob" }, () => false),
    /taken|reserved/,
  );
});

test("clients: nobody is connected, and the metrics say so", async (t) => {
  const { config, service } = openParts(t);
  const { gauges } = openClients(config, service);
  assert.equal(gauges.countClients(), 0);
  assert.match(await service.metrics.render(), /tunnel_\w+ 0/);
});

test("callers: a malformed list of tokens is refused", (t) => {
  const { config, service } = openParts(t);
  assert.equal(openCallers(config, service).trusted.has("127.0.0.1"), false);
  assert.throws(() => openCallers({ ...config, auth_token: "ann=" }, service), /auth_token/);
});

test("API: its routes answer without a port", async (t) => {
  const { config, service } = openParts(t);
  const names = await openNames(config, service, undefined);
  const clients = openClients(config, service);
  const { api } = createRelayApi(config, service, names, clients, openCallers(config, service));
  const answer = await api.fetch(new Request("http://relay/api/v1/nothing"));
  assert.equal(answer.status, 404);
});

test("traffic: an unknown tunnel is a 404 of the relay", async (t) => {
  const { config, service } = openParts(t);
  const names = await openNames(config, service, undefined);
  const clients = openClients(config, service);
  const callers = openCallers(config, service);
  const api = createRelayApi(config, service, names, clients, callers);
  const port = await openTraffic(config, service, names, clients, callers, api);
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    headers: { host: "shop.tunnels.example" },
  });
  assert.equal(answer.status, 404);
});
