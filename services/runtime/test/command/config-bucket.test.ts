// `platform up` with the gateway's configuration in a bucket of its own storage.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { S3Client, S3ClientError } from "@platform/s3";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
} from "@platform/testing/platform-process";
import { waitFor } from "@platform/testing/wait";

test("a bucket without an endpoint is created, with an empty configuration and a key that only reads it", async () => {
  const folder = makeFolder();
  const args = ["up", "--json", "--data", folder, "--only", "gateway,storage", ...anyPort];
  const running = run(args, {
    PLATFORM_CONFIG_STORE_BUCKET: "s3://configuration/gate.json",
    PLATFORM_GATE_CONFIG_STORE_POLL_S: "1",
  });
  const started = await running.waitFor(findStarted);
  const credentials = parseEnv(readFileSync(join(folder, "credentials.env"), "utf8"));
  const endpoint = new URL(find(started, "vault").url);
  const open = (accessKey: string, secretKey: string) =>
    new S3Client({
      endpoint,
      region: "us-east-1",
      bucket: "configuration",
      credentials: () => ({ accessKey, secretKey }),
      attemptsMax: 1,
    });
  const root = open(credentials["STORE_ACCESS_KEY_ID"]!, credentials["STORE_SECRET_ACCESS_KEY"]!);
  assert.equal((await root.head("gate.json"))?.bytes, 3);
  const gate = find(started, "gate").url;
  // The routes of the file stay until the configuration has some.
  assert.equal((await fetch(new URL("/hello", gate))).status, 200);
  const route = { prefix: "/remote", respond: { status: 204 }, auth: { type: "none" } };
  await root.put("gate.json", Buffer.from(JSON.stringify({ routes: [route] })));
  if (process.platform === "linux") {
    const environment = readFileSync(`/proc/${find(started, "gate").pid}/environ`, "utf8");
    const [, secret = ""] = /CONFIG_STORE_SECRET_KEY=([^\0]+)/.exec(environment) ?? [];
    const reader = open("platform-gateway", secret);
    assert.ok(((await reader.head("gate.json"))?.bytes ?? 0) > 3);
    await assert.rejects(reader.put("gate.json", Buffer.from("{}")), S3ClientError);
    reader.close();
  }
  root.close();
  await waitFor(async () => (await fetch(new URL("/remote", gate))).status === 204, "the route");
  running.child.kill("SIGTERM");
  assert.equal(await running.exit, 0);
});
