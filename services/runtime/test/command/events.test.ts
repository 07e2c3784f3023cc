// Events of buckets reach messaging over STOMP, without anything to configure.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
} from "../fixture/platform-process.ts";

test("a subscription with the URL stomp://platform publishes to a topic of messaging", async () => {
  const data = makeFolder();
  const up = run(["up", "--json", "--only", "storage,messaging", "--data", data, ...anyPort]);
  const started = await up.waitFor(findStarted);
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  const user = `${credentials["STORE_ACCESS_KEY_ID"]}:${credentials["STORE_SECRET_ACCESS_KEY"]}`;
  const put = async (path: string, body: string) => {
    const signed = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-u", user];
    const unsigned = ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"];
    const url = `${find(started, "vault").url}${path}`;
    const args = ["-sS", "--fail-with-body", ...signed, ...unsigned, "-X", "PUT", "-d", body, url];
    return promisify(execFile)("curl", args);
  };
  await put("/photos", "");
  const stomp = { url: "stomp://platform", destination: "/topic/store.photos" };
  const subscription = { bucket: "photos", events: ["objstore:ObjectCreated:*"], stomp };
  await put("/photos?notification=", JSON.stringify(subscription));
  await put("/photos/a.jpg", "hello");
  const tail = `${find(started, "pulse").url}/api/v1/tail?topic=store.photos`;
  const headers = { authorization: `Bearer ${credentials["PLATFORM_PULSE_TOKEN"]}` };
  let text = "";
  for (let turn = 0; turn < 200 && !text.includes("a.jpg"); turn++) {
    await sleep(50);
    const answer = await fetch(tail, { headers });
    text = answer.status === 200 ? await answer.text() : "";
  }
  assert.match(text, /objstore:ObjectCreated:Put/);
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0);
});
