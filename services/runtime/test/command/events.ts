// Events of buckets reach messaging over STOMP, without anything to configure.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { makeCertificate } from "@platform/testing/certificates";
import { find, makeFolder } from "@platform/testing/platform-process";
import { joinPlatform, readCredentials, startPlatform, stopPlatform } from "./running-platform.ts";

/** A certificate for localhost, as the environment of messaging. */
function makeTlsSettings(): Record<string, string> {
  const names = "DNS:localhost,IP:127.0.0.1";
  const { cert, key } = makeCertificate(makeFolder(), "localhost", { names });
  return { PLATFORM_PULSE_TLS_CERT_FILE: cert, PLATFORM_PULSE_TLS_KEY_FILE: key };
}

async function curl(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("curl", ["-sS", "--insecure", ...args]);
  return stdout;
}

for (const [title, start] of [
  ["", joinPlatform],
  [" with a certificate", () => startPlatform(["--only", "storage,messaging"], makeTlsSettings())],
] as const) {
  test(`a subscription with the URL stomp://platform publishes to a topic of messaging${title}`, async () => {
    const platform = await start();
    const { started } = platform;
    const credentials = readCredentials(platform);
    const user = `${credentials["STORE_ACCESS_KEY_ID"]}:${credentials["STORE_SECRET_ACCESS_KEY"]}`;
    const put = async (path: string, body: string) => {
      const signed = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-u", user];
      const unsigned = ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"];
      const url = `${find(started, "vault").url}${path}`;
      await curl("--fail-with-body", ...signed, ...unsigned, "-X", "PUT", "-d", body, url);
    };
    await put("/uploads", "");
    const stomp = { url: "stomp://platform", destination: "/topic/store.uploads" };
    const subscription = { bucket: "uploads", events: ["objstore:ObjectCreated:*"], stomp };
    await put("/uploads?notification=", JSON.stringify(subscription));
    await put("/uploads/a.jpg", "hello");
    const { url } = find(started, "pulse");
    assert.equal(url.startsWith("https:"), title !== "");
    const token = `Authorization: Bearer ${credentials["PLATFORM_PULSE_TOKEN"]}`;
    let text = "";
    for (let turn = 0; turn < 400 && !text.includes("a.jpg"); turn++) {
      await sleep(50);
      text = await curl("-H", token, `${url}/api/v1/tail?topic=store.uploads`);
    }
    assert.match(text, /objstore:ObjectCreated:Put/);
    if (start !== joinPlatform) await stopPlatform(platform);
  });
}
