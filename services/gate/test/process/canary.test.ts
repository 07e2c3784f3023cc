// A canary under live traffic: promoted to all of it, rolled back when it fails, and remembered over a restart.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

async function startNamed(context: TestContext, name: string) {
  const state = { url: "", status: 200 };
  const server = createServer((_request, response) => {
    response.writeHead(state.status);
    response.end(name);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}

interface Canary {
  id: string;
  phase: string;
  weight: number;
  steps: { at: number; phase: string; weight: number; failures: number }[];
}

test("a failing canary is rolled back under traffic, and stays so after a restart", async (context) => {
  const stable = await startNamed(context, "stable");
  const canary = await startNamed(context, "canary");
  const folder = makeFolder(context);
  const config = {
    workers: 2,
    routes: [
      {
        prefix: "/",
        targets_weighted: [
          { url: stable.url, weight: 50 },
          { url: canary.url, weight: 50 },
        ],
        canary_auto_promote: true,
        // Slow enough that the test always sees the promotion before its end.
        canary_promote_step: 1,
        canary_promote_sec: 1,
        canary_max_error_rate: 0.2,
      },
      {
        prefix: "/small",
        targets_weighted: [
          { url: stable.url, weight: 249 },
          { url: canary.url, weight: 1 },
        ],
        canary_auto_promote: true,
        canary_promote_sec: 3_600,
      },
    ],
  };
  const gate = await startGate(context, { runtime: runtimes[0]!, folder, config });
  const view = async (url: string) => {
    const routes = (await (await fetch(`${url}/api/v1/routes`)).json()) as {
      prefix: string;
      status: { canary: Canary; targets: { share: number }[] };
    }[];
    const { canary, targets } = routes.find(({ prefix }) => prefix === "/")!.status;
    assert.deepEqual(
      targets.map(({ share }) => share),
      [100 - canary.weight, canary.weight],
    );
    return canary;
  };
  // 0.4 % is less than half a percent, which must not become nothing.
  const small = Array.from({ length: 250 }, async () => (await fetch(`${gate.url}/small`)).text());
  assert.equal((await Promise.all(small)).filter((name) => name === "canary").length, 1);
  const names = { stable: 0, canary: 0 };
  const send = async (): Promise<void> => {
    const answer = await fetch(`${gate.url}/shop`);
    names[(await answer.text()) as keyof typeof names]++;
  };
  await waitFor(async () => {
    // A window needs several requests for the canary, also on a busy machine.
    await Promise.all(Array.from({ length: 10 }, send));
    const { weight } = await view(gate.url);
    return weight > 50 && names.canary > 0 && names.stable > 0;
  }, "a promotion under traffic");
  canary.status = 500;
  await waitFor(async () => {
    await Promise.all([send(), send(), send(), send()]);
    return (await view(gate.url)).phase === "rolled_back";
  }, "the rollback");
  await gate.waitForLine(({ msg }) => msg === "canary rolled back");
  const before = names.canary;
  for (let request = 0; request < 20; request++) await send();
  assert.equal(names.canary, before, "all traffic goes to the stable target");
  const scrape = await (await fetch(`${gate.url}/metrics`)).text();
  assert.match(scrape, /^platform_gate_canary_rollbacks_total 1$/m);

  gate.signal("SIGKILL");
  await gate.ended;
  const again = await startGate(context, { runtime: runtimes[0]!, folder, config });
  const { id, phase, weight, steps, ...settings } = await view(again.url);
  assert.deepEqual([phase, weight], ["rolled_back", 0]);
  assert.deepEqual(settings, { step_points: 1, step_seconds: 1, error_rate_max: 0.2 });
  const [failed, last] = steps.slice(-2);
  assert.deepEqual([last!.phase, last!.weight], ["rolled_back", 0]);
  assert.ok(failed!.failures > 0 && failed!.at < last!.at, "the step that failed is kept");
  canary.status = 200;
  const url = `${again.url}/api/v1/admin/canary/${id}/promote`;
  const promoted = await fetch(url, { method: "POST" });
  assert.deepEqual(await promoted.json(), { phase: "promoted", weight: 100 });
  assert.equal(await (await fetch(`${again.url}/shop`)).text(), "canary");
});
