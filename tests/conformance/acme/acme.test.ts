// Automatic certificates against pebble: both challenges, external accounts, refused nonces, renewal, restarts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { spawn, spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { pebbleSkip as skip } from "@platform/testing/pebble";
import { waitFor } from "@platform/testing/wait";
import {
  bun,
  type Edge,
  type GateProcess,
  prepareEdge as prepare,
  readPeer,
  startEdge as start,
} from "./edge.ts";

/** Serial number of the certificate of a name; the code of the error if the handshake fails. */
async function readSerial(edge: Edge, servername: string, ca: string): Promise<string> {
  try {
    return (await readPeer(edge.port, servername, ca)).serialNumber;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function waitForCertificate(gate: GateProcess, name: string) {
  return gate.waitForLine((line) => line.msg === "certificate obtained" && line["name"] === name);
}

async function readPlain(edge: Edge, path: string, host: string) {
  const headers = { Host: host };
  const asked = request({ host: "127.0.0.1", port: edge.plainPort, path, headers }).end();
  const [answer] = await once(asked, "response");
  answer.resume();
  return { status: answer.statusCode, location: answer.headers.location };
}

for (const challenge of ["tls-alpn-01", "http-01"]) {
  test(
    `${challenge}: a certificate is obtained, and kept over a restart`,
    { skip },
    async (context) => {
      const edge = await prepare(context);
      const more = { acme_challenges: [challenge], auto_tls_domain: ["one.test", "two.test"] };
      const gate = await start(context, edge, more);
      await Promise.all(["one.test", "two.test"].map((name) => waitForCertificate(gate, name)));
      const root = await edge.pebble.readRoot();
      const serial = await readSerial(edge, "one.test", root);
      assert.match(serial, /^[0-9A-F]+$/);
      assert.notEqual(await readSerial(edge, "two.test", root), serial);
      assert.equal(await readSerial(edge, "three.test", root), "ERR_SSL_TLSV1_UNRECOGNIZED_NAME");
      gate.signal("SIGTERM");
      await gate.ended;
      const next = await start(context, edge, more);
      assert.equal(await readSerial(edge, "one.test", root), serial);
      assert.equal(
        next.lines().some(({ msg }) => msg === "account registered"),
        false,
      );
    },
  );
}

const bunSkip = bun === undefined ? "Bun is not installed (tools/install-peers bun)" : skip;

test(
  "Bun reads the protocol before TLS, and normal clients meanwhile",
  { skip: bunSkip },
  async (context) => {
    const edge = await prepare(context, { lifeSeconds: 8 });
    const more = { acme_challenges: ["tls-alpn-01"], workers: 1 };
    const gate = await start(context, edge, more, bun);
    await waitForCertificate(gate, "one.test");
    const root = await edge.pebble.readRoot();
    const serials = new Set<string>();
    // Renewed at half of their life: challenges are pending now and then.
    while (serials.size < 3) {
      const serial = await readSerial(edge, "one.test", root);
      assert.match(serial, /^[0-9A-F]+$/);
      serials.add(serial);
      // Bun may reset the connection before the client has read the alert.
      assert.match(await readSerial(edge, "three.test", root), /UNRECOGNIZED_NAME|ECONNRESET/);
    }
  },
);

const bin = fileURLToPath(new URL("../../../bin/platform-gate.js", import.meta.url));

/** Runs a command of the gateway's program against a running gateway. */
function runCommand(edge: Edge, root: string, args: readonly string[]) {
  const ca = join(edge.folder, "root.pem");
  writeFileSync(ca, root);
  // Its certificate is one of a name, which resolves to this machine.
  const url = `https://localhost:${edge.port}`;
  const all = [bin, "certificates", ...args, "--url", url, "--ca", ca];
  const env = { ...process.env, PLATFORM_GATE_AUTH_TOKEN: "operator-token" };
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { encoding: "utf8", env });
  return { status, stdout, stderr };
}

test("certificates are listed, renewed and revoked by commands", { skip }, async (context) => {
  const edge = await prepare(context);
  const gate = await start(context, edge, {
    auto_tls_domain: ["localhost"],
    auth_token: "operator-token",
  });
  await waitForCertificate(gate, "localhost");
  const root = await edge.pebble.readRoot();
  const listed = runCommand(edge, root, ["list"]);
  assert.match(listed.stdout, /^localhost {2}acme {2}valid {2}20\d\d-/m, listed.stderr);
  const first = await readSerial(edge, "localhost", root);
  const renewed = runCommand(edge, root, ["renew", "localhost"]);
  assert.match(renewed.stdout, /^localhost: new certificate, valid until /, renewed.stderr);
  const second = await readSerial(edge, "localhost", root);
  assert.notEqual(second, first);
  const reason = ["--reason", "key_compromise"];
  const revoked = runCommand(edge, root, ["revoke", "localhost", ...reason]);
  assert.match(revoked.stdout, /revoked\n.*new certificate/s, revoked.stderr);
  assert.notEqual(await readSerial(edge, "localhost", root), second);
  assert.match(edge.pebble.readLog(), /Revoked|revoked|revoke-cert/);
  const unknown = runCommand(edge, root, ["renew", "other.test"]);
  assert.equal(unknown.status, 1);
  assert.match(unknown.stderr, /other\.test is not a name with an automatic certificate/);
});

test(
  "plain HTTP redirects to https, and refuses hosts that are no names",
  { skip },
  async (context) => {
    const edge = await prepare(context);
    await start(context, edge);
    const location = `https://one.test:${edge.port}/a/b?c=d`;
    assert.deepEqual(await readPlain(edge, "/a/b?c=d", "One.Test:80"), { status: 308, location });
    for (const host of ["127.0.0.1", "a_b..test", "<script>"]) {
      assert.deepEqual(await readPlain(edge, "/", host), { status: 400, location: undefined });
    }
    const path = "/.well-known/acme-challenge/unknown";
    assert.equal((await readPlain(edge, path, "one.test")).status, 404);
  },
);

test(
  "an external account, and a directory that refuses every second nonce",
  { skip },
  async (context) => {
    const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    const edge = await prepare(context, { externalKeys: { "kid-1": key }, nonceRefusals: 50 });
    const gate = await start(context, edge);
    const refusal = await gate.waitForLine(({ msg }) => msg === "cannot obtain a certificate");
    assert.match(String(refusal["reason"]), /set acme_eab_kid and acme_eab_hmac_key/);
    gate.signal("SIGTERM");
    await gate.ended;
    const more = { acme_eab_kid: "kid-1", acme_eab_hmac_key: key };
    const bound = await start(context, edge, more);
    await waitForCertificate(bound, "one.test");
    assert.match(await readSerial(edge, "one.test", await edge.pebble.readRoot()), /^[0-9A-F]+$/);
  },
);

/** Handshakes by the openssl program, beside those of Node. */
const HANDSHAKES = Number(process.env["PLATFORM_ACME_HANDSHAKES"] ?? 4);

/** Fails unless openssl verifies the certificate as one of the name. */
async function checkByOpenssl(port: number, name: string, ca: string): Promise<void> {
  const place = ["s_client", "-connect", `127.0.0.1:${port}`, "-servername", name];
  const rules = ["-CAfile", ca, "-verify_return_error", "-verify_hostname", name];
  const child = spawn("openssl", [...place, ...rules], { stdio: ["ignore", "ignore", "pipe"] });
  let fault = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (fault += text));
  const [code] = await once(child, "close");
  assert.equal(code, 0, `${name}: ${fault}`);
}

test("handshakes during renewals get a certificate of their name", { skip }, async (context) => {
  // Renewed at half of their life.
  const edge = await prepare(context, { lifeSeconds: 8 });
  const gate = await start(context, edge, { auto_tls_domain: ["one.test", "two.test"] });
  await Promise.all(["one.test", "two.test"].map((name) => waitForCertificate(gate, name)));
  const root = await edge.pebble.readRoot();
  const serials = new Set<string>();
  const count = () => gate.lines().filter(({ msg }) => msg === "certificate obtained").length;
  const names = ["one.test", "two.test"];
  for (let round = 0; count() < 6; round++) {
    const name = names[round % 2]!;
    const serial = await readSerial(edge, name, root);
    assert.match(serial, /^[0-9A-F]+$/, name);
    serials.add(serial);
  }
  assert.ok(serials.size >= 4, String(serials.size));
  const ca = join(edge.folder, "root.pem");
  writeFileSync(ca, root);
  const before = count();
  for (let round = 0; round < HANDSHAKES; round++) {
    await checkByOpenssl(edge.port, names[round % 2]!, ca);
  }
  // A thousand take longer than a life.
  if (HANDSHAKES >= 1_000) assert.ok(count() >= before + 2, `${count() - before} renewals`);
});

test("a host of a new route gets a certificate", { skip }, async (context) => {
  const edge = await prepare(context);
  const own = { target: "http://127.0.0.1:9" };
  const routes = [{ prefix: "/", host: "one.test", ...own }];
  const gate = await start(context, edge, { auto_tls_domain: [], routes });
  await waitForCertificate(gate, "one.test");
  const more = [...routes, { prefix: "/", host: "two.test", ...own }];
  const path = join(edge.folder, "gate.json");
  const reload = (used: typeof routes): void => {
    const config = { ...edge.config, auto_tls_domain: [], routes: used };
    writeFileSync(path, JSON.stringify(config));
    gate.signal("SIGHUP");
  };
  reload(more);
  await waitForCertificate(gate, "two.test");
  const root = await edge.pebble.readRoot();
  const serial = await readSerial(edge, "two.test", root);
  // The certificate of a host that comes back is on disk.
  const refused = "ERR_SSL_TLSV1_UNRECOGNIZED_NAME";
  const waitForSerial = (wanted: string): Promise<true> =>
    waitFor(async () => (await readSerial(edge, "two.test", root)) === wanted);
  reload(routes);
  await waitForSerial(refused);
  reload(more);
  await waitForSerial(serial);
});

test("a name is asked for once its handshake has failed", { skip }, async (context) => {
  const asked: string[] = [];
  const judge = createServer((incoming, outgoing) => {
    const name = new URL(incoming.url ?? "/", "http://judge").searchParams.get("domain") ?? "";
    asked.push(name);
    outgoing.writeHead(name.startsWith("good") ? 200 : 404).end();
  }).listen(0, "127.0.0.1");
  context.after(() => judge.close());
  await once(judge, "listening");
  const { port } = judge.address() as AddressInfo;
  const edge = await prepare(context);
  const more = { auto_tls_domain: [], auto_tls_ask_url: `http://127.0.0.1:${port}/ask` };
  const gate = await start(context, edge, more);
  for (const name of ["good.test", "bad.test", "bad.test"]) {
    assert.equal(await readSerial(edge, name, ""), "ERR_SSL_TLSV1_UNRECOGNIZED_NAME");
  }
  await waitForCertificate(gate, "good.test");
  assert.deepEqual(asked.sort(), ["bad.test", "good.test"]);
  gate.signal("SIGTERM");
  await gate.ended;
  await start(context, edge, more);
  const root = await edge.pebble.readRoot();
  assert.match(await readSerial(edge, "good.test", root), /^[0-9A-F]+$/);
});

test(
  "a damaged certificate is set aside and obtained again; a damaged account stops the start",
  { skip },
  async (context) => {
    const edge = await prepare(context);
    const gate = await start(context, edge);
    await waitForCertificate(gate, "one.test");
    gate.signal("SIGTERM");
    await gate.ended;
    const acme = join(edge.folder, "gate.json.state", "acme");
    const [hash = ""] = readdirSync(acme);
    const certificates = join(acme, hash, "certificates");
    for (const name of readdirSync(certificates)) writeFileSync(join(certificates, name), "cut");
    const next = await start(context, edge);
    await next.waitForLine(({ msg }) => /a stored certificate is damaged/.test(msg));
    await waitForCertificate(next, "one.test");
    assert.ok(
      readdirSync(certificates).some((name) => /^one\.test\.json\.damaged-\d+$/.test(name)),
    );
    next.signal("SIGTERM");
    await next.ended;
    for (const name of ["account.json", ".account.json.copy"]) {
      writeFileSync(join(acme, hash, name), "cut");
    }
    await assert.rejects(start(context, edge), /account\.json is not usable/);
  },
);

test("an unreachable directory does not delay the start", { skip }, async (context) => {
  const edge = await prepare(context);
  await edge.pebble.stop();
  const gate = await start(context, edge);
  const line = await gate.waitForLine(({ msg }) => msg === "cannot obtain a certificate");
  assert.equal(line["name"], "one.test");
  assert.ok(Number(line["wait_s"]) >= 45 && Number(line["wait_s"]) <= 75);
});

/** Requests of an order, each of which follows the answer of the one before. */
const STEPS = ["/sign-me-up", "/order-plz", "/authZ/", "/chalZ/", "/finalize-order/", "/certZ/"];
/** Each is a start of the gateway: all of them in the long form. */
const KILLED = process.env["PLATFORM_ACME_KILLS"] === "all" ? STEPS : STEPS.slice(0, 1);

test(
  `kill -9 after ${KILLED.length} steps of an order makes no second account`,
  { skip },
  async (context) => {
    const edge = await prepare(context);
    for (const step of KILLED) {
      const known = edge.pebble.readLog().length;
      const gate = await start(context, edge);
      await waitFor(
        () => edge.pebble.readLog().slice(known).includes(`POST ${step}`),
        () => `${step} in ${edge.pebble.readLog().slice(known)}`,
      );
      gate.signal("SIGKILL");
      await gate.ended;
    }
    const next = await start(context, edge);
    const root = await edge.pebble.readRoot();
    await waitFor(
      async () => /^[0-9A-F]+$/.test(await readSerial(edge, "one.test", root)),
      () => JSON.stringify(next.lines()),
    );
    assert.match(edge.pebble.readLog(), /There are now 1 accounts in memory/);
    assert.doesNotMatch(edge.pebble.readLog(), /There are now 2 accounts in memory/);
  },
);
