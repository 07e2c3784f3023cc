// The gateway as a process with several workers on one port.
import assert from "node:assert/strict";
import { Agent, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";

const workers = 3;
/** So many that one worker gets none of them once in 10^15 runs. */
const clients = 90;

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: all workers accept connections on one port`, async (context) => {
    let connections = 0;
    const upstream = createServer({ keepAliveTimeout: 60_000 }, (_request, answer) => {
      answer.end("up");
    });
    upstream.on("connection", () => connections++);
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    context.after(() => {
      upstream.closeAllConnections();
      upstream.close();
    });
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const config = { workers, routes: [{ prefix: "/", target }] };
    const gate = await startGate(context, { runtime, config });
    for (let count = 0; count < clients; count++) {
      assert.equal(await askAlone(`${gate.url}/`), 200);
    }
    // One request at a time: each worker needs one connection to the upstream, and keeps it.
    assert.equal(connections, workers);
  });
}

/** One request on a connection of its own; resolves with the status once the answer is there. */
function askAlone(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: new Agent({ keepAlive: false }) }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode ?? 0));
    }).on("error", reject);
  });
}
