// Directories that are down, slow, or send what no certificate can be made of: each order ends with its reason.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { AcmeClient } from "../../src/acme/acme-client.ts";
import { obtainCertificate } from "../../src/acme/order.ts";
import { makeFolder } from "../fixture/gate-process.ts";

const NAME = "one.test";
/** Longer than an answer of this machine takes, and shorter than a client waits. */
const GIVEN_UP_MS = 1_500;

/** Does something else than a right answer, by path; true if it has. */
type Fault = (path: string, response: ServerResponse, csr: string) => boolean;

/** An authority that signs requests. */
class Authority {
  readonly #folder: string;
  readonly #pair: { cert: string; key: string };

  constructor(folder: string) {
    this.#folder = folder;
    this.#pair = makeCertificate(folder, "authority");
  }

  /** A certificate of the name with a key of its own. */
  makeOther(): string {
    const { cert } = makeCertificate(this.#folder, "other", { names: `DNS:${NAME}` });
    return readFileSync(cert, "utf8");
  }

  /** Signs the request (DER, base64url) for a name; the certificate in PEM. */
  sign(csr: string, name: string): string {
    const extensions = join(this.#folder, "extensions");
    writeFileSync(extensions, `subjectAltName=DNS:${name}\n`);
    const { cert, key } = this.#pair;
    const args = ["x509", "-req", "-inform", "DER", "-CA", cert, "-CAkey", key, "-days", "1"];
    const { stdout, stderr } = spawnSync("openssl", [...args, "-extfile", extensions], {
      input: Buffer.from(csr, "base64url"),
      encoding: "utf8",
    });
    assert.match(stdout, /BEGIN CERTIFICATE/, stderr);
    return stdout;
  }
}

/** The payload of a signed request. */
async function readPayload(request: IncomingMessage): Promise<{ csr?: string }> {
  let text = "";
  for await (const piece of request) text += String(piece);
  if (text === "") return {};
  const { payload } = JSON.parse(text) as { payload: string };
  return JSON.parse(Buffer.from(payload, "base64url").toString() || "{}") as { csr?: string };
}

async function startDirectory(context: TestContext, authority: Authority, fault: Fault) {
  let nonces = 0;
  let [csr, isProven] = ["", false];
  const server = createServer((request, response) => {
    void readPayload(request).then((payload) => {
      const origin = `http://${request.headers.host}`;
      const path = (request.url ?? "").slice(1);
      csr = payload.csr ?? csr;
      if (path === "challenge") isProven = true;
      if (fault(path, response, csr)) return;
      if (path !== "directory") response.setHeader("Replay-Nonce", `nonce${nonces++}`);
      response.setHeader("Location", `${origin}/${path === "newOrder" ? "order" : path}`);
      response.end(answer(path, origin, { csr, isProven }));
    });
  }).listen(0, "127.0.0.1");
  context.after(() => server.close());
  context.after(() => server.closeAllConnections());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/directory`;

  function answer(path: string, origin: string, state: { csr: string; isProven: boolean }): string {
    if (path === "certificate") return authority.sign(state.csr, NAME);
    const link = (name: string): string => `${origin}/${name}`;
    if (path === "directory") {
      const names = ["newNonce", "newAccount", "newOrder", "revokeCert"];
      return JSON.stringify(Object.fromEntries(names.map((name) => [name, link(name)])));
    }
    const challenge = { type: "http-01", url: link("challenge"), token: "t", status: "pending" };
    if (path === "authorization") {
      const status = state.isProven ? "valid" : "pending";
      return JSON.stringify({ status, challenges: [challenge] });
    }
    const [authorizations, finalize] = [[link("authorization")], link("finalize")];
    const status = state.csr === "" ? "ready" : "valid";
    const certificate = link("certificate");
    return JSON.stringify({ status, authorizations, finalize, certificate });
  }
}

/** Runs an order; the names of proofs that are still visible. */
async function order(directoryUrl: string, signal: AbortSignal) {
  const visible = new Set<string>();
  const common = { readNowMs: Date.now, signal };
  const client = new AcmeClient({
    ...common,
    directoryUrl,
    ca: undefined,
    accountKey: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    userAgent: "test",
  });
  const obtain = async () => {
    await client.register({ email: undefined, binding: undefined });
    return obtainCertificate({
      ...common,
      client,
      name: NAME,
      challenges: ["http-01"],
      keyType: "p256",
      profile: undefined,
      replaces: undefined,
      publish: async ({ token }) => {
        visible.add(token);
        return async () => void visible.delete(token);
      },
    });
  };
  return { visible, result: obtain() };
}

const send = (response: ServerResponse, status: number, body: string): true => {
  response.writeHead(status, { "Replay-Nonce": "again" }).end(body);
  return true;
};
const problem = (type: string, detail: string): string =>
  JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail });
/** An authorization whose challenge has failed, or is never looked at. */
const authorize =
  (status: string): Fault =>
  (path, response) => {
    if (path !== "authorization") return false;
    const url = `http://${response.req.headers.host}/challenge`;
    const challenge = { type: "http-01", url, token: "t", status, error: { detail: "no route" } };
    return send(response, 200, JSON.stringify({ status, challenges: [challenge] }));
  };

test("a directory without a fault gives a certificate of the name", { skip }, async (context) => {
  const url = await startDirectory(context, new Authority(makeFolder(context)), () => false);
  const { visible, result } = await order(url, AbortSignal.timeout(60_000));
  const { certPem } = await result;
  assert.equal(new X509Certificate(certPem).subjectAltName, `DNS:${NAME}`);
  assert.equal(visible.size, 0);
});

const at =
  (wanted: string, status: number, body: string): Fault =>
  (path, response) =>
    path === wanted && send(response, status, body);

const faults: [name: string, fault: (authority: Authority) => Fault, says: RegExp][] = [
  ["answers 500", () => at("directory", 500, "<html>"), /answered with status 500$/],
  ["is a page", () => at("directory", 200, "<html>"), /directory is not as RFC 8555 describes/],
  [
    "refuses all nonces",
    () => (path, response) =>
      path === "newAccount" && send(response, 400, problem("badNonce", "another one")),
    /: badNonce: another one$/,
  ],
  [
    "has no nonces",
    () => (path, response) => {
      if (path === "newNonce") response.end();
      return path === "newNonce";
    },
    /sends no nonces$/,
  ],
  [
    "limits rates",
    () => at("newOrder", 429, problem("rateLimited", "later")),
    /: rateLimited: later$/,
  ],
  ["does not find the proof", () => authorize("invalid"), /http-01 failed: no route$/],
  [
    "has another order",
    () => at("finalize", 403, problem("orderNotReady", "no")),
    /: orderNotReady: no$/,
  ],
  [
    "signs another key",
    (authority) => at("certificate", 200, authority.makeOther()),
    /is that of another key$/,
  ],
  [
    "signs another name",
    (authority) => (path, response, csr) =>
      path === "certificate" && send(response, 200, authority.sign(csr, "other.test")),
    /is not one of one\.test$/,
  ],
  ["sends no chain", () => at("certificate", 200, "<html>"), /is no certificate in PEM$/],
  [
    "sends too long a chain",
    () => at("certificate", 200, "x".repeat(200_000)),
    /chain is too long$/,
  ],
  ["sends megabytes", () => at("certificate", 200, "x".repeat(5_000_000)), /./],
];

for (const [name, describe, says] of faults) {
  test(`a directory that ${name}: the order ends with the reason`, { skip }, async (context) => {
    const authority = new Authority(makeFolder(context));
    const url = await startDirectory(context, authority, describe(authority));
    const { visible, result } = await order(url, AbortSignal.timeout(60_000));
    await assert.rejects(result, says);
    assert.equal(visible.size, 0, "the proof is withdrawn");
  });
}

const silent: [name: string, fault: Fault][] = [
  ["never answers", (path) => path === "newOrder"],
  ["never validates", authorize("pending")],
];
for (const [name, fault] of silent) {
  test(`a directory that ${name} is given up, with its proof`, { skip }, async (context) => {
    const url = await startDirectory(context, new Authority(makeFolder(context)), fault);
    const startedMs = performance.now();
    const { visible, result } = await order(url, AbortSignal.timeout(GIVEN_UP_MS));
    await assert.rejects(result);
    assert.ok(performance.now() - startedMs >= GIVEN_UP_MS - 100, "it waits as long as it may");
    assert.ok(performance.now() - startedMs < GIVEN_UP_MS + 10_000);
    assert.equal(visible.size, 0, "the proof is withdrawn");
  });
}
