// Session tickets over changes of their keys: those of the time before are accepted, older ones are not.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { connect } from "node:tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

const CLOCK = new URL("../fixture/moved-clock.ts", import.meta.url).href;
const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;
/** More than two workers would share by chance. */
const CONNECTIONS = 8;

type Version = (typeof VERSIONS)[number];

/** Sends a request; the session of its connection, and whether that was resumed. */
async function ask(port: number, version: Version, session?: Buffer) {
  const socket = connect({
    host: "127.0.0.1",
    port,
    rejectUnauthorized: false,
    servername: "one.test",
    minVersion: version,
    maxVersion: version,
    ...(session === undefined ? {} : { session }),
  });
  let next = session;
  socket.on("session", (given) => (next = given));
  await once(socket, "secureConnect");
  const isReused = socket.isSessionReused();
  // The name of its keys; of TLS 1.3, tickets come later.
  const keys = socket.getTLSTicket()?.toString("hex", 0, 16);
  socket.write("GET /healthz HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n");
  let answer = "";
  for await (const piece of socket) answer += String(piece);
  assert.match(answer, /^HTTP\/1\.1 200 /);
  return { isReused, session: next, keys };
}

/** Counts the connections that resume a session. */
async function countReused(port: number, version: Version, session: Buffer | undefined) {
  let reused = 0;
  for (let at = 0; at < CONNECTIONS; at++) {
    if ((await ask(port, version, session)).isReused) reused++;
  }
  return reused;
}

/** Starts a proxy that passes the bytes of clients on one by one; its port. */
async function startSplitter(context: TestContext, port: number): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connectTcp({ host: "127.0.0.1", port, noDelay: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
    }
    client.on("data", (bytes) => {
      for (const byte of Buffer.from(bytes)) upstream.write(Buffer.of(byte));
    });
    client.on("end", () => upstream.end());
    upstream.pipe(client);
  }).listen(0, "127.0.0.1");
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** The bytes that the gateway sends to a client that does not speak TLS. */
async function sendPlainly(port: number, text: string): Promise<Buffer> {
  const socket = connectTcp({ host: "127.0.0.1", port });
  socket.on("error", () => socket.destroy());
  socket.write(text);
  const answer: Buffer[] = [];
  socket.on("data", (bytes) => answer.push(Buffer.from(bytes)));
  await once(socket, "close");
  return Buffer.concat(answer);
}

function runOpenssl(port: number, ...args: string[]): string {
  const place = ["s_client", "-connect", `127.0.0.1:${port}`, "-servername", "one.test"];
  // Tickets of TLS 1.3 come after the handshake: the program reads until the server closes.
  const input = "GET /healthz HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n";
  const options = { input, encoding: "utf8", timeout: 60_000 } as const;
  const { stdout } = spawnSync("openssl", [...place, "-ign_eof", ...args], options);
  assert.match(stdout, /HTTP\/1\.1 200 /);
  return /^(New|Reused), TLSv1\.[23]/m.exec(stdout)?.[0] ?? stdout;
}

test(
  "a session is resumed at each worker until its keys have changed twice",
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const { cert, key } = makeCertificate(folder, "one", { names: "DNS:one.test" });
    const clock = join(folder, "clock");
    const gate = await startGate(context, {
      runtime: runtimes[0]!,
      folder,
      config: { workers: 2, tls_cert: cert, tls_key: key },
      env: { NODE_OPTIONS: `--import ${CLOCK}`, PLATFORM_TEST_CLOCK: clock },
    });
    const { port } = gate;
    const saved = Object.fromEntries(
      VERSIONS.map((version) => {
        const option = version.toLowerCase().replace("v", "").replace(".", "_");
        return [version, [`-${option}`, join(folder, option)]] as [string, [string, string]];
      }),
    ) as Record<Version, [string, string]>;
    const sessions = new Map<Version, Buffer | undefined>();
    for (const version of VERSIONS) {
      sessions.set(version, (await ask(port, version)).session);
      const [option, file] = saved[version];
      assert.equal(runOpenssl(port, option, "-sess_out", file), `New, ${version}`);
    }
    const { keys } = await ask(port, "TLSv1.2");
    /** Moves the clock, until all workers have other keys. */
    const change = async (hours: number, before: string | undefined): Promise<void> => {
      writeFileSync(clock, String(hours));
      await waitFor(async () => {
        for (let at = 0; at < CONNECTIONS; at++) {
          if ((await ask(port, "TLSv1.2")).keys === before) return false;
        }
        return true;
      }, "new keys");
    };
    await change(12, keys);
    const second = (await ask(port, "TLSv1.2")).keys;
    for (const version of VERSIONS) {
      assert.equal(await countReused(port, version, sessions.get(version)), CONNECTIONS, version);
      const [option, file] = saved[version];
      assert.equal(runOpenssl(port, option, "-sess_in", file), `Reused, ${version}`);
      const { session } = await ask(port, version);
      assert.equal(await countReused(port, version, session), CONNECTIONS, `new of ${version}`);
    }
    // The first message is read before TLS now, in any pieces.
    const splitter = await startSplitter(context, port);
    for (const version of VERSIONS) {
      assert.ok((await ask(splitter, version, sessions.get(version))).isReused, version);
      assert.equal((await ask(splitter, version)).isReused, false, version);
    }
    for (const text of [
      "GET / HTTP/1.1\r\nHost: one.test\r\n\r\n",
      "\x16\x03\x01\xff\xff".repeat(9),
    ]) {
      assert.doesNotMatch((await sendPlainly(port, text)).toString("latin1"), /HTTP/);
    }
    await change(24, second);
    for (const version of VERSIONS) {
      assert.equal(await countReused(port, version, sessions.get(version)), 0, version);
      const [option, file] = saved[version];
      assert.equal(runOpenssl(port, option, "-sess_in", file), `New, ${version}`);
    }
  },
);
