// Credentials of upstreams that the gateway holds: who sees them, and which may be named over the API.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

async function serveHeaders(t: TestContext, seen: IncomingHttpHeaders[]): Promise<string> {
  return serve(
    t,
    createServer((request, response) => {
      seen.push(request.headers);
      request.resume();
      response.end("ok");
    }),
  );
}

for (const runtime of runtimesOfRules) {
  test(`the upstream gets the gateway's credential instead of the client's, and nobody else does (${runtime.name})`, async (t) => {
    const seen: IncomingHttpHeaders[] = [];
    const mirrored: IncomingHttpHeaders[] = [];
    const target = await serveHeaders(t, seen);
    const mirror = { target: await serveHeaders(t, mirrored) };
    const folder = makeFolder(t);
    const key = join(folder, "key");
    const recording = join(folder, "recording.jsonl");
    writeFileSync(key, "file-secret\n");
    const gate = await startGate(t, {
      runtime,
      folder,
      env: { PROVIDER_KEY: "env-secret" },
      config: {
        record_path: recording,
        routes: [
          { prefix: "/env", target, mirror, record: true, upstream_auth: { env: "PROVIDER_KEY" } },
          { prefix: "/file", target, upstream_auth: { file: key, header: "x-api-key" } },
        ],
      },
    });
    const headers = { authorization: "Bearer of-the-client", "x-api-key": "of-the-client" };
    await fetch(`${gate.url}/env/a`, { headers });
    assert.equal(seen[0]?.authorization, "Bearer env-secret");
    assert.equal(seen[0]?.["x-api-key"], undefined);
    await fetch(`${gate.url}/file/a`, { headers });
    assert.equal(seen[1]?.["x-api-key"], "file-secret");
    assert.equal(seen[1]?.authorization, undefined);
    await waitFor(() => mirrored.length === 1);
    assert.equal(mirrored[0]?.authorization, undefined);
    await waitFor(() => readFileSync(recording, "utf8").includes("\n"));
    assert.ok(!readFileSync(recording, "utf8").includes("secret"));
    const routes = await (await fetch(`${gate.url}/api/v1/routes`)).text();
    assert.ok(routes.includes("PROVIDER_KEY") && !routes.includes("env-secret"), routes);

    writeFileSync(key, "new-secret");
    gate.signal("SIGHUP");
    await waitFor(async () => {
      await fetch(`${gate.url}/file/a`);
      return seen.at(-1)?.["x-api-key"] === "new-secret";
    });
    const missing = await fetch(`${gate.url}/api/v1/routes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prefix: "/x", target, upstream_auth: { env: "NOT_THERE" } }),
    });
    assert.equal(missing.status, 400);
    assert.match(await missing.text(), /upstream_auth\.env.*NOT_THERE.*is not set/);
  });
}
