// Certificates by name: which client gets which, replaced files, damaged files.
import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { createCleanup } from "@platform/testing/cleanup";
import { waitFor } from "@platform/testing/wait";
import { type GateProcess, makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

const [runtime] = runtimes;

/** Common name of the certificate that a client gets for a name; the code of its error if it is refused. */
async function readName(port: number, servername: string | undefined): Promise<string> {
  const options: ConnectionOptions = { host: "127.0.0.1", port, rejectUnauthorized: false };
  const socket = connect(servername === undefined ? options : { ...options, servername });
  try {
    await once(socket, "secureConnect");
    return String(socket.getPeerCertificate().subject.CN);
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  } finally {
    socket.destroy();
  }
}

interface View {
  use: string;
  source: string;
  serves: string[];
  renew_at: string | null;
  last_error: string | null;
  file: string;
}

async function ask(port: number, path: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  let answer = "";
  for await (const piece of socket) answer += String(piece);
  return answer;
}

async function listCertificates(port: number): Promise<View[]> {
  const answer = await ask(port, "/api/v1/admin/certificates");
  const text = answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
  return (JSON.parse(text) as { items: View[] }).items;
}

function make(folder: string, name: string, names: string): { cert: string; key: string } {
  return makeCertificate(folder, name, { names });
}

async function reload(gate: GateProcess): Promise<void> {
  const count = () => gate.lines().filter(({ msg }) => msg === "configuration reloaded").length;
  const before = count();
  gate.signal("SIGHUP");
  await waitFor(() => count() > before, "the reload");
}

const common = createCleanup();
after(() => common.run());

/** The gateway of tests that need a fallback, which only a start applies. */
async function openShared() {
  const folder = makeFolder(common);
  const { cert: tls_cert, key: tls_key } = make(
    folder,
    "fallback",
    "DNS:fallback.test,DNS:api.test",
  );
  const fallback = { tls_cert, tls_key };
  const gate = await startGate(common, { runtime: runtime!, folder, config: fallback });
  const use = async (certificates: object[]): Promise<void> => {
    const next = { addr: "127.0.0.1:0", ...fallback, certificates };
    writeFileSync(join(folder, "gate.json"), JSON.stringify(next));
    await reload(gate);
  };
  return { folder, gate, fallback: tls_cert, use };
}

let opened: ReturnType<typeof openShared> | undefined;

test(
  "a name gets its certificate, then a wildcard of one label, then the fallback",
  { skip },
  async () => {
    const { folder, gate, use } = await (opened ??= openShared());
    const api = make(folder, "api", "DNS:api.test,DNS:www.api.test");
    const wild = make(folder, "wild", "DNS:*.api.test");
    const other = make(folder, "other", "DNS:api.test");
    await use([api, wild, { ...other, names: ["API.test", "forced.test"] }]);
    const expected: [name: string | undefined, certificate: string][] = [
      ["api.test", "api"],
      ["API.TEST", "api"],
      ["www.api.test", "api"],
      ["other.api.test", "wild"],
      ["deep.other.api.test", "fallback"],
      ["forced.test", "other"],
      ["unknown.test", "fallback"],
      [undefined, "fallback"],
    ];
    for (const [name, certificate] of expected) {
      assert.equal(await readName(gate.port, name), certificate, String(name));
    }
    const warning = await gate.waitForLine(({ msg }) => /two certificates/.test(msg));
    assert.deepEqual(
      [warning["name"], warning["used"], warning["ignored"]],
      ["api.test", api.cert, other.cert],
    );
    const served = (await listCertificates(gate.port)).map(({ source, serves }) => [
      source,
      serves,
    ]);
    assert.deepEqual(served, [
      ["file", ["api.test", "www.api.test"]],
      ["file", ["*.api.test"]],
      ["file", ["forced.test"]],
      ["file", ["fallback.test", "*"]],
    ]);
  },
);

test(
  "without a fallback, an unknown name fails with unrecognized_name",
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const one = make(folder, "one", "DNS:one.test,DNS:127.0.0.1");
    const config = { workers: 1, certificates: [{ ...one, names: ["one.test"] }] };
    const gate = await startGate(context, { runtime: runtime!, folder, config });
    assert.equal(await readName(gate.port, "one.test"), "one");
    assert.equal(await readName(gate.port, "two.test"), "ERR_SSL_TLSV1_UNRECOGNIZED_NAME");
    assert.match(await readName(gate.port, undefined), /^ERR_SSL_.*HANDSHAKE_FAILURE$/);
    const two = make(folder, "two", "DNS:two.test");
    const next = { addr: "127.0.0.1:0", workers: 1, certificates: [one, two] };
    writeFileSync(join(folder, "gate.json"), JSON.stringify(next));
    await reload(gate);
    assert.equal(await readName(gate.port, "two.test"), "two");
  },
);

test(
  "a damaged pair leaves the previous certificate in use, with a warning",
  { skip },
  async () => {
    const { folder, gate, fallback, use } = await (opened ??= openShared());
    const one = make(folder, "one", "DNS:one.test");
    await use([one]);
    const foreign = make(folder, "foreign", "DNS:one.test");
    copyFileSync(foreign.cert, one.cert);
    const line = await gate.waitForLine(({ msg }) => /the previous one stays active/.test(msg));
    assert.equal(line["path"], one.cert);
    assert.equal(await readName(gate.port, "one.test"), "one");
    await waitFor(
      async () => /"certificates":"[^"]*does not belong/.test(await ask(gate.port, "/readyz")),
      "the warning of the probe",
    );
    const faults = (await listCertificates(gate.port)).map(({ file, last_error }) => [
      file,
      last_error !== null,
    ]);
    assert.deepEqual(faults, [
      [one.cert, true],
      [fallback, false],
    ]);
    copyFileSync(foreign.key, one.key);
    await waitFor(
      async () => (await readName(gate.port, "one.test")) === "foreign",
      "the new pair",
    );
    await waitFor(
      async () => !(await ask(gate.port, "/readyz")).includes('"certificates"'),
      "the end of the warning",
    );
    const metrics = await ask(gate.port, "/metrics");
    const seconds = /platform_gate_certificate_expiry_seconds\{name="one\.test"\} (\d+)/.exec(
      metrics,
    );
    assert.ok(
      Number(seconds?.[1]) > 86_400 && Number(seconds?.[1]) <= 2 * 86_400,
      String(seconds?.[0]),
    );
    assert.match(metrics, /platform_gate_certificate_expiry_seconds\{name="\*"\} /);
  },
);

test("a pair that is not usable stops the start, with its place", { skip }, async (context) => {
  const folder = makeFolder(context);
  const one = make(folder, "one", "DNS:one.test");
  const config = { certificates: [one, { cert: join(folder, "none.crt"), key: one.key }] };
  await assert.rejects(
    startGate(context, { runtime: runtime!, folder, config }),
    /certificates\[1\]: .*none\.crt cannot be read: no such file/,
  );
});
