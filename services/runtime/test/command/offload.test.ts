// `platform up` with a bucket for messaging's segments in its own storage.
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
  type Started,
} from "@platform/testing/platform-process";
import { waitFor } from "@platform/testing/wait";

const BUCKET = "segments-of-messages";
const PAYLOAD_BYTES = 200_000;
/** Each takes as long as the first start. */
const RESTARTS = Number(process.env["PLATFORM_OFFLOAD_RESTARTS"] ?? 0);

/** Starts messaging and storage on a folder. */
async function start(folder: string) {
  const args = ["up", "--json", "--data", folder, "--only", "messaging,storage", ...anyPort];
  const running = run(args, { PLATFORM_PULSE_S3_BUCKET: BUCKET });
  const started = await running.waitFor(findStarted);
  const credentials = parseEnv(readFileSync(join(folder, "credentials.env"), "utf8"));
  return { running, started, credentials };
}

async function ask(started: Started, token: string, path: string, body?: object) {
  const answer = await fetch(new URL(path, find(started, "pulse").url), {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.ok(answer.ok, text);
  return JSON.parse(text);
}

test(`a bucket without an endpoint is one of the platform's own storage, over ${RESTARTS} restarts`, async () => {
  const folder = makeFolder();
  const { running, started, credentials } = await start(folder);
  const token = credentials["PLATFORM_PULSE_TOKEN"]!;
  const status = await ask(started, token, "/api/v1/admin/offloader");
  assert.deepEqual([status.source, status.s3_bucket], ["config", BUCKET]);
  const config = { offload: true, local_retention_bytes: 0, segment_bytes: PAYLOAD_BYTES };
  await ask(started, token, "/api/v1/topics", { name: "kept", config });
  for (let at = 0; at < 3; at += 1) {
    const payload = `${at} `.padEnd(PAYLOAD_BYTES, "p");
    await ask(started, token, "/api/v1/publish", { topic: "kept", payload });
  }
  const isMoved = async () => {
    const { remote_segments: moved } = await ask(started, token, "/api/v1/admin/offloader");
    return moved >= 2;
  };
  await waitFor(isMoved);
  const root = new S3Client({
    endpoint: new URL(find(started, "vault").url),
    region: "us-east-1",
    bucket: BUCKET,
    credentials: () => ({
      accessKey: credentials["STORE_ACCESS_KEY_ID"]!,
      secretKey: credentials["STORE_SECRET_ACCESS_KEY"]!,
    }),
  });
  assert.ok((await root.list("log/")).objects.length >= 2);
  root.close();
  const { url } = find(started, "vault");
  const stranger = new S3Client({
    endpoint: new URL(url),
    region: "us-east-1",
    bucket: BUCKET,
    credentials: () => ({ accessKey: "platform-messaging", secretKey: "a-secret-of-nobody" }),
    attemptsMax: 1,
  });
  await assert.rejects(
    stranger.list(""),
    (error) => error instanceof S3ClientError && error.code === "access_denied",
  );
  stranger.close();
  running.child.kill("SIGTERM");
  assert.equal(await running.exit, 0);
  for (let round = 0; round < RESTARTS; round += 1) await checkRestart(folder, token);
});

async function checkRestart(folder: string, token: string): Promise<void> {
  const { running, started } = await start(folder);
  const { messages } = await ask(started, token, "/api/v1/tail?topic=kept&n=3");
  assert.equal(messages.length, 3);
  assert.ok(messages[0].payload.startsWith("0 "));
  running.child.kill("SIGTERM");
  assert.equal(await running.exit, 0);
}
