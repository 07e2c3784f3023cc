// A script for pages of any origin: with and without a build.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createScriptRoute } from "@platform/console";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";

function openApi(pageFolder: string) {
  const resource = { service: "script", version: "1" };
  return createApi({
    ...resource,
    routes: [
      createScriptRoute({
        folder: "client",
        file: "client.js",
        summary: "A client",
        tag: "Client",
        clock: systemClock,
        pageFolder,
      }),
    ],
    guard: () => ({ kind: "anonymous" }),
    health: new HealthRegistry(resource),
    metrics: new MetricRegistry(),
    logger: createLogger({ ...resource, format: "json", write: () => undefined }),
    tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
    clock: systemClock,
  });
}

test("without a build the answer names the command, and with one any origin gets the script", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "console-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const url = "http://localhost/client/client.js";
  const missing = await openApi(folder).fetch(new Request(url));
  assert.equal(missing.status, 503);
  const { code, detail } = (await missing.json()) as { code: string; detail: string };
  assert.equal(code, "not_built");
  assert.match(detail, /npm run build:console/);
  mkdirSync(join(folder, "client"));
  writeFileSync(join(folder, "client/client.js"), "export {};\n");
  const found = await openApi(folder).fetch(new Request(url));
  assert.deepEqual([found.status, await found.text()], [200, "export {};\n"]);
  assert.equal(found.headers.get("access-control-allow-origin"), "*");
  assert.equal(found.headers.get("cross-origin-resource-policy"), "cross-origin");
});
