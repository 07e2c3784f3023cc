// Automatic certificates against pebble: both challenges, external accounts, refused nonces, renewal, restarts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { spawn, spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pebbleSkip as skip } from "@platform/testing/pebble";
import { waitFor } from "@platform/testing/wait";
import {
  bun,
  createCleanup,
  type Edge,
  type GateProcess,
  prepareEdge as prepare,
  readPeer,
  startEdge as start,
} from "./edge.ts";

/** Between handshakes of a client that repeats them until a renewal. */
const PAUSE_MS = 40;

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

/** Requests of an order, each of which follows the answer of the one before. */
const STEPS = ["/sign-me-up", "/order-plz", "/authZ/", "/chalZ/", "/finalize-order/", "/certZ/"];
/** Tests of gateways of their own, each of which takes seconds of processor time to start, are part of the long form. */
const IS_LONG = process.env["PLATFORM_ACME_KILLS"] === "all";
const KILLED = IS_LONG ? STEPS : [];

const KEY_ID = "kid-1";
const ACCOUNT_KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
const BINDING = { acme_eab_kid: KEY_ID, acme_eab_hmac_key: ACCOUNT_KEY };
/** Of good nonces; of half of them, five tries in a row are refused now and then, and a name waits for a minute. */
const REFUSED_PERCENT = IS_LONG ? 50 : 20;

const shared = createCleanup();
after(() => shared.run());

/** The gateway that most tests share: a start takes seconds of processor time. */
interface Shared {
  edge: Edge;
  gate: GateProcess;
  root: string;
  /** Names that the judge of unknown names was asked for. */
  asked: string[];
  more: object;
  /** The reason that a gateway without an external account gave. */
  refusal: string;
}

let opened: Promise<Shared> | undefined;

function openShared(): Promise<Shared> {
  opened ??= startShared();
  return opened;
}

const target = { target: "http://127.0.0.1:9" };
const ROUTES = [{ prefix: "/", host: "route.test", ...target }];

/** Starts the judge of unknown names, which allows those that begin with "good"; its URL. */
async function startJudge(asked: string[]): Promise<string> {
  const judge = createServer((incoming, outgoing) => {
    const name = new URL(incoming.url ?? "/", "http://judge").searchParams.get("domain") ?? "";
    asked.push(name);
    outgoing.writeHead(name.startsWith("good") ? 200 : 404).end();
  }).listen(0, "127.0.0.1");
  shared.after(() => judge.close());
  await once(judge, "listening");
  return `http://127.0.0.1:${(judge.address() as AddressInfo).port}/ask`;
}

// It has been killed before: all that follows is that of an account and, in the long form, of orders which were interrupted.
async function startShared(): Promise<Shared> {
  const asked: string[] = [];
  const edge = await prepare(shared, {
    externalKeys: { [KEY_ID]: ACCOUNT_KEY },
    nonceRefusals: REFUSED_PERCENT,
  });
  const unbound = await start(shared, edge, { workers: 1 });
  const line = await unbound.waitForLine(({ msg }) => msg === "cannot obtain a certificate");
  unbound.signal("SIGKILL");
  await unbound.ended;
  const more = {
    ...BINDING,
    acme_challenges: ["tls-alpn-01"],
    auto_tls_domain: ["one.test", "two.test", "localhost"],
    auto_tls_hosts: true,
    auto_tls_ask_url: await startJudge(asked),
    auth_token: "operator-token",
    routes: ROUTES,
  };
  for (const step of KILLED) {
    const known = edge.pebble.readLog().length;
    const gate = await start(shared, edge, more);
    await waitFor(
      () => edge.pebble.readLog().slice(known).includes(`POST ${step}`),
      () => `${step} in ${edge.pebble.readLog().slice(known)}`,
    );
    gate.signal("SIGKILL");
    await gate.ended;
  }
  const gate = await start(shared, edge, more);
  const root = await edge.pebble.readRoot();
  return { edge, gate, root, asked, more, refusal: String(line["reason"]) };
}

const REFUSED = "ERR_SSL_TLSV1_UNRECOGNIZED_NAME";

function waitForSerial(
  { edge, root, gate }: Shared,
  name: string,
  fits: (serial: string) => boolean = (serial) => /^[0-9A-F]+$/.test(serial),
): Promise<string> {
  return waitFor(
    async () => {
      const serial = await readSerial(edge, name, root);
      return fits(serial) && serial;
    },
    () => `${name} in ${JSON.stringify(gate.lines())}`,
  );
}

test("an external account, and a directory that refuses many good nonces", { skip }, async () => {
  const one = await openShared();
  assert.match(one.refusal, /set acme_eab_kid and acme_eab_hmac_key/);
  await waitForSerial(one, "one.test");
  // In the long form after a kill -9 at each step of an order.
  checkOneAccount(one);
});

function checkOneAccount({ edge }: Shared): void {
  assert.match(edge.pebble.readLog(), /There are now 1 accounts in memory/);
  assert.doesNotMatch(edge.pebble.readLog(), /There are now 2 accounts in memory/);
}

const bin = fileURLToPath(new URL("../../../bin/platform-gate.js", import.meta.url));

function describeCommand(edge: Edge, root: string, args: readonly string[]) {
  const ca = join(edge.folder, "root.pem");
  writeFileSync(ca, root);
  // Its certificate is one of a name, which resolves to this machine.
  const url = `https://localhost:${edge.port}`;
  const command = [bin, "certificates", ...args, "--url", url, "--ca", ca];
  const env = { ...process.env, PLATFORM_GATE_AUTH_TOKEN: "operator-token" };
  return { command, env };
}

/** Runs a command of the gateway's program against a running gateway. */
function runCommand(edge: Edge, root: string, args: readonly string[]) {
  const { command, env } = describeCommand(edge, root, args);
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    encoding: "utf8",
    env,
  });
  return { status, stdout, stderr };
}

/** The output of a command that runs beside the test. */
async function runCommandMeanwhile(
  edge: Edge,
  root: string,
  args: readonly string[],
): Promise<string> {
  const { command, env } = describeCommand(edge, root, args);
  const child = spawn(process.execPath, command, { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await once(child, "close");
  return text;
}

test("certificates are listed, renewed and revoked by commands", { skip }, async () => {
  const one = await openShared();
  const { edge, root } = one;
  await waitForSerial(one, "localhost");
  const listed = runCommand(edge, root, ["list"]);
  assert.match(listed.stdout, /^localhost {2}acme {2}valid {2}20\d\d-/m, listed.stderr);
  const first = await readSerial(edge, "localhost", root);
  const reason = ["--reason", "key_compromise"];
  const revoked = runCommand(edge, root, ["revoke", "localhost", ...reason]);
  assert.match(revoked.stdout, /revoked\n.*new certificate/s, revoked.stderr);
  assert.notEqual(await readSerial(edge, "localhost", root), first);
  assert.match(edge.pebble.readLog(), /Revoked|revoked|revoke-cert/);
  const unknown = runCommand(edge, root, ["renew", "other.test"]);
  assert.equal(unknown.status, 1);
  assert.match(unknown.stderr, /other\.test is not a name with an automatic certificate/);
});

test("handshakes during renewals get a certificate of their name", { skip }, async () => {
  const { edge, root } = await openShared();
  const names = ["one.test", "localhost"];
  const ca = join(edge.folder, "root.pem");
  writeFileSync(ca, root);
  const first = await readSerial(edge, "localhost", root);
  const over = new AbortController();
  const renewal = runCommandMeanwhile(edge, root, ["renew", "localhost"]).finally(() =>
    over.abort(),
  );
  const serials = new Set<string>();
  for (let round = 0; !over.signal.aborted; round++) {
    const name = names[round % 2]!;
    const serial = await readSerial(edge, name, root);
    assert.match(serial, /^[0-9A-F]+$/, name);
    if (name === "localhost") serials.add(serial);
    await delay(PAUSE_MS);
  }
  assert.match(await renewal, /^localhost: new certificate, valid until /);
  serials.add(await readSerial(edge, "localhost", root));
  assert.ok(serials.has(first), "the former one, until there is another");
  assert.equal(serials.size, 2);
  for (const name of names) await checkByOpenssl(edge.port, name, ca);
});

test("plain HTTP redirects to https, and refuses hosts that are no names", { skip }, async () => {
  const { edge } = await openShared();
  const location = `https://one.test:${edge.port}/a/b?c=d`;
  assert.deepEqual(await readPlain(edge, "/a/b?c=d", "One.Test:80"), { status: 308, location });
  for (const host of ["127.0.0.1", "a_b..test", "<script>"]) {
    assert.deepEqual(await readPlain(edge, "/", host), { status: 400, location: undefined });
  }
  const path = "/.well-known/acme-challenge/unknown";
  assert.equal((await readPlain(edge, path, "one.test")).status, 404);
});

test("a host of a new route gets a certificate", { skip }, async () => {
  const one = await openShared();
  const { edge, gate, more } = one;
  await waitForSerial(one, "route.test");
  const path = join(edge.folder, "gate.json");
  const reload = (routes: typeof ROUTES): void => {
    writeFileSync(path, JSON.stringify({ ...edge.config, ...more, routes }));
    gate.signal("SIGHUP");
  };
  const both = [...ROUTES, { prefix: "/", host: "added.test", ...target }];
  reload(both);
  const serial = await waitForSerial(one, "added.test");
  // The certificate of a host that comes back is on disk.
  reload(ROUTES);
  await waitForSerial(one, "added.test", (text) => text === REFUSED);
  reload(both);
  await waitForSerial(one, "added.test", (text) => text === serial);
});

test("a name is asked for once its handshake has failed", { skip }, async () => {
  const one = await openShared();
  one.asked.length = 0;
  for (const name of ["good.test", "bad.test", "bad.test"]) {
    assert.equal(await readSerial(one.edge, name, ""), REFUSED);
  }
  await waitForSerial(one, "good.test");
  assert.deepEqual(one.asked.sort(), ["bad.test", "good.test"]);
});

test(
  "a damaged certificate is set aside and obtained again; a damaged account stops the start",
  { skip },
  async () => {
    const one = await openShared();
    const { edge, root, more } = one;
    await waitForSerial(one, "two.test");
    const [kept, asked, damaged] = await Promise.all([
      waitForSerial(one, "one.test"),
      waitForSerial(one, "good.test"),
      waitForSerial(one, "two.test"),
    ]);
    one.gate.signal("SIGKILL");
    await one.gate.ended;
    const acme = join(edge.folder, "gate.json.state", "acme");
    const [hash = ""] = readdirSync(acme);
    const certificates = join(acme, hash, "certificates");
    for (const name of readdirSync(certificates)) {
      if (name.includes("two.test")) writeFileSync(join(certificates, name), "cut");
    }
    // The other challenge.
    one.gate = await start(shared, edge, { ...more, acme_challenges: ["http-01"] });
    await one.gate.waitForLine(({ msg }) => /a stored certificate is damaged/.test(msg));
    // All others are those from before the restart, at the first connection.
    assert.equal(await readSerial(edge, "one.test", root), kept);
    assert.equal(await readSerial(edge, "good.test", root), asked, "also that which was asked for");
    assert.notEqual(await waitForSerial(one, "two.test"), damaged);
    assert.equal(
      one.gate.lines().some(({ msg }) => msg === "account registered"),
      false,
    );
    checkOneAccount(one);
    assert.ok(
      readdirSync(certificates).some((name) => /^two\.test\.json\.damaged-\d+$/.test(name)),
    );
    one.gate.signal("SIGTERM");
    await one.gate.ended;
    for (const name of ["account.json", ".account.json.copy"]) {
      writeFileSync(join(acme, hash, name), "cut");
    }
    await assert.rejects(start(shared, edge, more), /account\.json is not usable/);
  },
);

/** In the long form: the shared gateway has the first kind, and the other kind after its restart. */
const CHALLENGES = IS_LONG ? ["tls-alpn-01", "http-01"] : [];

for (const challenge of CHALLENGES) {
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
      assert.equal(await readSerial(edge, "three.test", root), REFUSED);
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

/** Handshakes by the openssl program, beside those of Node. */
const HANDSHAKES = Number(process.env["PLATFORM_ACME_HANDSHAKES"] ?? 4);

/** Fails unless openssl verifies the certificate as one of the name. */
async function checkByOpenssl(
  port: number,
  name: string,
  ca: string,
  explain: () => string = () => "",
): Promise<void> {
  const place = ["s_client", "-connect", `127.0.0.1:${port}`, "-servername", name];
  const rules = ["-CAfile", ca, "-verify_return_error", "-verify_hostname", name];
  const child = spawn("openssl", [...place, ...rules], { stdio: ["ignore", "ignore", "pipe"] });
  let fault = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (fault += text));
  const [code] = await once(child, "close");
  if (code !== 0) assert.fail(`${name}: ${fault}${explain()}`);
}

if (IS_LONG) {
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
        await delay(PAUSE_MS);
      }
    },
  );

  test(
    "handshakes during renewals of short lives get a certificate of their name",
    { skip },
    async (context) => {
      // Renewed at half of their life: the other half is for an order on a busy machine.
      const edge = await prepare(context, { lifeSeconds: 20 });
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
        await delay(PAUSE_MS);
      }
      assert.ok(serials.size >= 4, String(serials.size));
      const ca = join(edge.folder, "root.pem");
      writeFileSync(ca, root);
      const before = count();
      for (let round = 0; round < HANDSHAKES; round++) {
        await checkByOpenssl(edge.port, names[round % 2]!, ca, () => JSON.stringify(gate.lines()));
      }
      // A thousand take longer than a life.
      if (HANDSHAKES >= 1_000) assert.ok(count() >= before + 2, `${count() - before} renewals`);
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
}
