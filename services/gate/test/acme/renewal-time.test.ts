// Times of renewals: by the life of a certificate, and as a directory suggests.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { AcmeClient } from "../../src/acme/acme-client.ts";
import { askForRenewal, chooseByLife, identifyCertificate } from "../../src/acme/renewal-time.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

test("a certificate is renewed at two thirds of its life, a short one at half, with jitter", () => {
  const choose = (days: number, random: number): number =>
    chooseByLife({ startMs: 0, endMs: days * DAY_MS }, random) / DAY_MS;
  assert.equal(Math.round(choose(90, 0.5)), 60);
  assert.equal(choose(90, 0).toFixed(6), (90 * (2 / 3 - 0.05)).toFixed(6));
  assert.ok(choose(90, 0.999) < 90 * (2 / 3 + 0.05));
  assert.equal(choose(6, 0.5), 3);
});

function makePem(context: TestContext): { pem: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), "renewal-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const authority = makeCertificate(folder, "ca");
  const { cert } = makeCertificate(folder, "one", { names: "DNS:one.test", authority });
  return { pem: readFileSync(cert, "utf8"), path: authority.cert };
}

test(
  "a certificate is identified by the key of its authority and its serial number",
  { skip },
  (context) => {
    const { path } = makePem(context);
    // Signs itself: its authority key identifier is its own.
    const text = execFileSync(
      "openssl",
      ["x509", "-in", path, "-noout", "-serial", "-ext", "authorityKeyIdentifier"],
      { encoding: "utf8" },
    );
    const serial = Buffer.from(/serial=([0-9A-F]+)/.exec(text)![1]!, "hex");
    const signed = serial[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), serial]) : serial;
    const keyId = /\n\s+((?:[0-9A-F]{2}:){19}[0-9A-F]{2})/.exec(text)![1]!.replaceAll(":", "");
    const expected = `${Buffer.from(keyId, "hex").toString("base64url")}.${signed.toString("base64url")}`;
    assert.equal(identifyCertificate(readFileSync(path, "utf8")), expected);
  },
);

test(
  "the time is in the suggested window, and the next question within an hour and a day",
  { skip },
  async (context) => {
    const { path } = makePem(context);
    const pem = readFileSync(path, "utf8");
    const answer = { retryAfter: "21600", asked: "" };
    const server = createServer((incoming, outgoing) => {
      const origin = `http://${incoming.headers.host}`;
      if (incoming.url === "/directory") {
        const urls = {
          newNonce: "n",
          newAccount: "a",
          newOrder: "o",
          revokeCert: "r",
          renewalInfo: "i",
        };
        const directory = Object.entries(urls).map(([name, end]) => [name, `${origin}/${end}`]);
        outgoing.end(JSON.stringify(Object.fromEntries(directory)));
        return;
      }
      answer.asked = incoming.url ?? "";
      outgoing.setHeader("Retry-After", answer.retryAfter);
      const window = { start: "2030-01-01T00:00:00Z", end: "2030-01-03T00:00:00Z" };
      outgoing.end(JSON.stringify({ suggestedWindow: window }));
    }).listen(0, "127.0.0.1");
    context.after(() => server.close());
    await once(server, "listening");
    const client = new AcmeClient({
      directoryUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/directory`,
      ca: undefined,
      accountKey: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
      userAgent: "test",
      readNowMs: Date.now,
      signal: new AbortController().signal,
    });
    const start = Date.parse("2030-01-01T00:00:00Z");
    for (const [retryAfter, hours] of [
      ["21600", 6],
      ["1", 1],
      ["9999999", 24],
    ] as const) {
      answer.retryAfter = retryAfter;
      const advice = await askForRenewal(client, pem, 1_000, 0.25);
      assert.deepEqual(advice, {
        renewAtMs: start + DAY_MS / 2,
        checkAtMs: 1_000 + hours * HOUR_MS,
      });
    }
    assert.equal(answer.asked, `/i/${identifyCertificate(pem)}`);
  },
);
