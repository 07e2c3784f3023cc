// Active health checks: a target that fails them gets no requests until it has recovered.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";

const SWITCHING =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n";

async function startChecked(context: TestContext, name: string) {
  const state = { url: "", health: "ok" as "ok" | "failing" | "silent" | "switching", checks: 0 };
  const server = createServer((request, response) => {
    if (request.url !== "/health?deep") {
      response.end(name);
      return;
    }
    state.checks++;
    if (state.health === "silent") return;
    if (state.health === "switching") {
      request.socket.write(SWITCHING);
      return;
    }
    response.writeHead(state.health === "ok" ? 204 : 500).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}

for (const runtime of runtimesOfRules) {
  test(`a target that fails its checks gets no requests until it recovers (${runtime.name})`, async (context) => {
    const one = await startChecked(context, "one");
    const two = await startChecked(context, "two");
    const gate = await startGate(context, {
      runtime,
      config: {
        workers: 2,
        routes: [
          {
            prefix: "/",
            targets: [one.url, two.url],
            health_check: {
              path: "/health?deep",
              interval_ms: 100,
              timeout_ms: 200,
              healthy_after: 2,
              unhealthy_after: 2,
            },
          },
        ],
      },
    });
    const readNames = async (): Promise<Set<string>> => {
      const answers = Array.from({ length: 8 }, async () => (await fetch(gate.url)).text());
      return new Set(await Promise.all(answers));
    };
    const readEjected = async (): Promise<boolean[]> => {
      const [route] = (await (await fetch(`${gate.url}/api/v1/routes`)).json()) as [
        { status: { targets: { ejected: boolean }[] } },
      ];
      return route.status.targets.map(({ ejected }) => ejected);
    };
    await waitFor(() => one.checks > 0 && two.checks > 0, "checks of both targets");
    assert.deepEqual([...(await readNames())].sort(), ["one", "two"]);
    for (const health of ["failing", "silent", "switching"] as const) {
      one.health = health;
      await waitFor(
        async () => (await readEjected())[0] === true,
        `a ${health} target is left out`,
      );
      assert.deepEqual(await readEjected(), [true, false]);
      assert.deepEqual([...(await readNames())], ["two"]);
      one.health = "ok";
      await waitFor(
        async () => (await readNames()).has("one"),
        "the recovered target serves again",
      );
    }
    const faults = gate
      .lines()
      .filter(({ msg }) => msg === "upstream fails its health checks")
      .map((line) => line["fault"]);
    assert.equal(faults[0], "status 500");
    assert.equal(faults.length, 3);
    const scrape = await (await fetch(`${gate.url}/metrics`)).text();
    assert.match(scrape, /^platform_gate_health_checks_total\{result="failed"\} [1-9]/m);
  });
}
