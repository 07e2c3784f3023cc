// The gateway as a process with TLS: a renewed certificate is taken up by a reload, a broken one is not.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type TLSSocket, connect } from "node:tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, runtimesOfRules, startGate } from "../fixture/gate-process.ts";

/** Replaces `cert.crt` and its key by those of a name. */
function replaceCertificate(folder: string, name: string): void {
  makeCertificate(folder, "cert", { subject: `/CN=${name}`, names: `DNS:${name}` });
}

function openConnection(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, rejectUnauthorized: false, servername: "one.test" };
    const socket = connect(options, () => resolve(socket));
    socket.on("error", reject);
  });
}

async function readName(port: number): Promise<string> {
  const socket = await openConnection(port);
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

for (const runtime of runtimesOfRules) {
  test(
    `${runtime.name}: a certificate is swapped under open connections, a broken one is refused`,
    {
      skip,
    },
    async (context) => {
      const folder = makeFolder(context);
      replaceCertificate(folder, "one.test");
      const gate = await startGate(context, {
        runtime,
        folder,
        config: { tls_cert: join(folder, "cert.crt"), tls_key: join(folder, "cert.key") },
      });
      assert.equal(await readName(gate.port), "one.test");
      const open = await openConnection(gate.port);

      replaceCertificate(folder, "two.test");
      gate.signal("SIGHUP");
      await gate.waitForLine((line) => line.msg === "configuration reloaded");
      assert.equal(await readName(gate.port), "two.test");

      const { cert } = makeCertificate(folder, "three.test");
      copyFileSync(cert, join(folder, "cert.crt"));
      gate.signal("SIGHUP");
      const refusal = await gate.waitForLine((line) => /nothing has changed/.test(line.msg));
      assert.match(
        String(refusal["reason"]),
        /tls_cert: the key in .*cert\.key does not belong to the certificate in .*cert\.crt/,
      );
      assert.equal(await readName(gate.port), "two.test");

      open.write("GET /healthz HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n");
      let answer = "";
      for await (const chunk of open) answer += String(chunk);
      assert.match(answer, /^HTTP\/1\.1 200 /);
    },
  );
}

test(
  "openssl reconnects five times with one session, at two workers",
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    replaceCertificate(folder, "one.test");
    const files = { tls_cert: join(folder, "cert.crt"), tls_key: join(folder, "cert.key") };
    const config = { workers: 2, ...files };
    const gate = await startGate(context, { runtime: runtimes[0]!, folder, config });
    const place = ["-connect", `127.0.0.1:${gate.port}`, "-servername", "one.test"];
    // Sessions of TLS 1.3 come after the handshake, when the program has gone on.
    const options = { input: "", encoding: "utf8", timeout: 60_000 } as const;
    const args = ["s_client", ...place, "-reconnect", "-tls1_2"];
    const { stdout } = spawnSync("openssl", args, options);
    assert.equal(stdout.split("Reused, TLSv1.2").length - 1, 5, stdout);
  },
);

test("a session resumes at every worker, also after a reload", { skip }, async (context) => {
  const folder = makeFolder(context);
  replaceCertificate(folder, "one.test");
  const [runtime] = runtimes;
  const gate = await startGate(context, {
    runtime: runtime!,
    folder,
    config: {
      workers: 2,
      tls_cert: join(folder, "cert.crt"),
      tls_key: join(folder, "cert.key"),
    },
  });
  /** Asks once, and returns whether the session was resumed and the next ticket. */
  const ask = async (version: "TLSv1.2" | "TLSv1.3", servername: string, session?: Buffer) => {
    const socket = connect({
      host: "127.0.0.1",
      port: gate.port,
      rejectUnauthorized: false,
      servername,
      minVersion: version,
      maxVersion: version,
      ...(session === undefined ? {} : { session }),
    });
    let ticket: Buffer | undefined;
    socket.on("session", (next) => (ticket = next));
    await once(socket, "secureConnect");
    const isReused = socket.isSessionReused();
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
    let answer = "";
    for await (const piece of socket) answer += String(piece);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    return { isReused, ticket: ticket ?? session };
  };
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    for (const name of ["one.test", "unknown.test"]) {
      let { ticket } = await ask(version, name);
      for (let round = 1; round <= 12; round++) {
        const next = await ask(version, name, ticket);
        assert.ok(next.isReused, `${version} ${name}, connection ${round}`);
        ({ ticket } = next);
      }
      if (name === "one.test") continue;
      replaceCertificate(folder, "one.test");
      const reloads = gate.lines().filter(({ msg }) => msg === "configuration reloaded").length;
      gate.signal("SIGHUP");
      await waitFor(
        () => gate.lines().filter(({ msg }) => msg === "configuration reloaded").length > reloads,
        "the reload",
      );
      assert.ok((await ask(version, name, ticket)).isReused, "after a reload");
    }
  }
});
