// Certificates and the JWT secret of a secret service: at the start, after changes, while it is down.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { connect } from "node:tls";
import { SignJWT } from "jose";
import { findFreePort } from "@platform/kernel/testing";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { createCleanup } from "@platform/testing/cleanup";
import { startSecretService } from "@platform/testing/secret-service";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, spawnGate, startGate } from "../fixture/gate-process.ts";

const [runtime] = runtimes;
const TOKEN = "hvs.token-of-the-gateway";
const ONE = "first secret of at least thirty-two bytes";
const TWO = "second secret of at least thirty-two bytes";

function makePair(
  folder: string,
  name: string,
  host = `${name}.test`,
): { cert: string; key: string } {
  const { cert, key } = makeCertificate(folder, name, { names: `DNS:${host}` });
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}

async function readName(port: number, servername: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, servername, rejectUnauthorized: false });
  try {
    await once(socket, "secureConnect");
    return String(socket.getPeerCertificate().subject.CN);
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  } finally {
    socket.destroy();
  }
}

async function ask(port: number, path: string, token?: string): Promise<string> {
  const socket = connect({
    host: "127.0.0.1",
    port,
    servername: "one.test",
    rejectUnauthorized: false,
  });
  const more = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}Connection: close\r\n\r\n`);
  let answer = "";
  for await (const piece of socket) answer += String(piece);
  return answer;
}

function sign(secret: string): Promise<string> {
  return new SignJWT({ scope: "gate:read" })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject("ada")
    .setIssuedAt()
    .setExpirationTime("5m")
    .sign(Buffer.from(secret));
}

async function prepare(context: Pick<TestContext, "after">) {
  const folder = makeFolder(context);
  const port = await findFreePort();
  const service = await startSecretService(TOKEN, port);
  context.after(() => service.close());
  const config = {
    secret_url: service.url,
    secret_tenant_id: "acme",
    secret_refresh_s: 1,
    workers: 2,
  };
  const env = { PLATFORM_SECRET_API_KEY: TOKEN };
  return { folder, port, service, options: { runtime: runtime!, folder, config, env } };
}

const shared = createCleanup();
after(() => shared.run());

/** The gateway of two tests, with the certificates `one` and `two` and the first secret. */
async function openShared() {
  const stage = await prepare(shared);
  const { folder, service, options } = stage;
  service.write("gateway/certificates/one", makePair(folder, "one"));
  const { cert: certificate, key: private_key } = makePair(folder, "two");
  service.write("gateway/certificates/two", { certificate, private_key });
  service.write("gateway/jwt", { secret: ONE });
  return { ...stage, gate: await startGate(shared, options) };
}

let opened: ReturnType<typeof openShared> | undefined;

test("certificates and JWT secret are used, and replaced by new versions", { skip }, async () => {
  const { folder, service, gate } = await (opened ??= openShared());
  assert.equal(await readName(gate.port, "one.test"), "one");
  assert.equal(await readName(gate.port, "two.test"), "two");
  assert.equal(await readName(gate.port, "three.test"), "ERR_SSL_TLSV1_UNRECOGNIZED_NAME");
  const [first, second] = [await sign(ONE), await sign(TWO)];
  const path = "/api/v1/admin/sources";
  assert.match(await ask(gate.port, path, first), /^HTTP\/1\.1 200 /);
  assert.match(await ask(gate.port, path, second), /^HTTP\/1\.1 401 /);
  assert.ok(
    service.requests.every((line) => line.endsWith(" acme")),
    service.requests.join("\n"),
  );

  const next = makeCertificate(folder, "next", { names: "DNS:one.test" });
  const pem = (file: string): string => readFileSync(file, "utf8");
  service.write("gateway/certificates/one", {
    "tls.crt": pem(next.cert),
    "tls.key": pem(next.key),
  });
  service.write("gateway/jwt", { secret: TWO });
  await waitFor(async () => (await readName(gate.port, "one.test")) === "next", "the new version");
  const shown = await waitFor(async () => {
    const answer = await ask(gate.port, path, second);
    return answer.startsWith("HTTP/1.1 200 ") && answer;
  }, "the new secret");
  assert.match(shown, /"kind":"secret_service".*"version":"one:2 two:1 jwt:2".*"error":null/);
  // The former secret verifies for a while.
  assert.match(await ask(gate.port, path, first), /^HTTP\/1\.1 200 /);

  // A pair without its key leaves the present one in use.
  service.write("gateway/certificates/one", { cert: pem(next.cert) });
  await gate.waitForLine(
    ({ msg, reason }) => /not usable/.test(msg) && /no key/.test(String(reason)),
  );
  assert.equal(await readName(gate.port, "one.test"), "next");
  // A chain that is damaged after its first certificate would make the workers refuse all further changes.
  const damaged = "-----BEGIN CERTIFICATE-----\nMAUwAwIBAA==\n-----END CERTIFICATE-----\n";
  const cut = { cert: `${pem(next.cert)}${damaged}`, key: pem(next.key) };
  service.write("gateway/certificates/one", cut);
  await gate.waitForLine(({ reason }) => /the certificate cannot be used/.test(String(reason)));
  service.write("gateway/certificates/two", makePair(folder, "other", "two.test"));
  await waitFor(async () => (await readName(gate.port, "two.test")) === "other", "a change");
  assert.equal(await readName(gate.port, "one.test"), "next");
  const log = JSON.stringify(gate.lines());
  for (const secret of [ONE, TWO, TOKEN, "PRIVATE KEY"]) assert.equal(log.includes(secret), false);
});

test(
  "a service that fails leaves its secrets in use; a start then uses the sealed copy",
  { skip },
  async (context) => {
    const { folder, service, options, gate } = await (opened ??= openShared());
    service.write("gateway/certificates/one", makePair(folder, "last", "one.test"));
    service.write("gateway/jwt", { secret: TWO });
    await waitFor(async () => (await readName(gate.port, "one.test")) === "last", "the pair");
    const path = "/api/v1/admin/sources";
    const second = await sign(TWO);
    const isUsed = async (): Promise<boolean> =>
      (await ask(gate.port, path, second)).startsWith("HTTP/1.1 200 ");
    await waitFor(isUsed, "the secret");
    const failures: [status: number, body: string, says: RegExp][] = [
      [403, "{}", /the token is refused \(403\)/],
      [200, "<html>", /the answer is not JSON/],
      [503, "{}", /status 503/],
    ];
    for (const [status, body, says] of failures) {
      service.fail({ status, body });
      const warning = ({ msg, reason }: { msg: string; reason?: unknown }): boolean =>
        msg === "cannot read secrets" && says.test(String(reason));
      await gate.waitForLine(warning);
      assert.equal(await readName(gate.port, "one.test"), "last");
    }
    await waitFor(
      async () =>
        /^HTTP\/1\.1 200 .*"secret service":"[^"]*503/s.test(await ask(gate.port, "/readyz")),
      "the warning of the probe",
    );
    gate.signal("SIGTERM");
    await gate.ended;
    const copy = readFileSync(join(folder, "gate.json.state", "secrets.sealed"), "utf8");
    assert.equal(copy.includes("PRIVATE KEY") || copy.includes(TWO), false);

    const next = await startGate(context, options);
    await next.waitForLine(({ msg }) => msg === "the sealed copy of the secrets is used");
    assert.equal(await readName(next.port, "one.test"), "last");
    assert.match(await ask(next.port, path, second), /^HTTP\/1\.1 200 /);
    service.fail(undefined);
    await waitFor(
      async () => !(await ask(next.port, "/readyz")).includes("secret service"),
      "the end of the warning",
    );
  },
);

test(
  "without a copy, a start fails after three tries, with the reason",
  { skip },
  async (context) => {
    const { service, options } = await prepare(context);
    service.fail({ status: 503, body: "" });
    const gate = spawnGate(context, options);
    const { code, stdout } = await gate.ended;
    assert.equal(code, 1);
    assert.match(stdout, /the secret service is not usable: .*status 503/);
  },
);
