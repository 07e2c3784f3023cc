// Each part of the gateway starts alone, on the parts below it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { openAccess } from "../src/assembly/access.ts";
import { openBase } from "../src/assembly/base.ts";
import { followFiles } from "../src/assembly/following.ts";
import { openTraffic } from "../src/assembly/traffic.ts";
import { gateDefinition } from "../src/config/document.ts";
import { checkLoaded } from "../src/config/load.ts";

const WORKER_ENTRY = new URL("../src/listen/worker.ts", import.meta.url);

async function openGateBase(t: TestContext, document: Record<string, unknown>) {
  const folder = mkdtempSync(join(tmpdir(), "gate-parts-"));
  const path = join(folder, "gate.json");
  writeFileSync(path, JSON.stringify({ addr: "127.0.0.1:0", ...document }));
  const loaded = loadConfig(gateDefinition, { argv: ["--config", path], env: {} });
  if (loaded.kind !== "run") throw new Error("not a start");
  const log = createLogger({ service: "gate", level: "error", format: "json", write: () => {} });
  const lifecycle = createEmbeddedLifecycle(log);
  t.after(async () => {
    await lifecycle.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const checked = checkLoaded(loaded);
  const base = await openBase(checked, log, lifecycle);
  t.after(() => base.listeners.release());
  return { base, folder, loadConfig: () => checked.config };
}

const ROUTES = { routes: [{ prefix: "/shop", target: "http://127.0.0.1:9" }] };

test("base: the stored state has the routes of the file, and its address is taken", async (t) => {
  const { base } = await openGateBase(t, ROUTES);
  assert.ok([...base.state.routes.values()].some(({ prefix }) => prefix === "/shop"));
  const { port } = base.listeners.main;
  await assert.rejects(openGateBase(t, { addr: `127.0.0.1:${port}` }), /in use/);
});

test("traffic: the controller knows all routes before a thread was started", async (t) => {
  const { base, loadConfig: reload } = await openGateBase(t, ROUTES);
  const { controller, pools } = await openTraffic(base, WORKER_ENTRY, reload);
  assert.equal(controller.state.routes.size, base.state.routes.size);
  assert.equal(pools.countLive(), 0);
});

test("access: without an issuer nothing is followed, and no key is known", async (t) => {
  const { base, loadConfig: reload } = await openGateBase(t, ROUTES);
  const { revocations, access } = await openAccess(
    base,
    await openTraffic(base, WORKER_ENTRY, reload),
  );
  assert.equal(revocations, undefined);
  assert.deepEqual(access.listShared().keys, []);
});

test("following: what it watches is let go of when the service stops", async (t) => {
  const { base, loadConfig: reload } = await openGateBase(t, ROUTES);
  followFiles(base, await openTraffic(base, WORKER_ENTRY, reload));
});
