// TLS of the relay: certificates by name, hot reload, encrypted clients.
import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect, createServer as createTlsServer } from "node:tls";
import { makeCertificate } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { dialRelay } from "../../src/client/dial.ts";
import { Cleanup, startLocal, startTestRelay } from "../fixture/stage.ts";
import { makeFolder, runProgram } from "../fixture/programs.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

/** Common name of the certificate that the relay shows for a server name. */
function readCertificateName(port: number, servername: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
  });
}

test("the wildcard certificate, those of custom domains, and renewed ones are served", async () => {
  const folder = makeFolder(cleanup);
  const custom = join(folder, "custom");
  mkdirSync(custom);
  makeCertificate(folder, "wildcard", { names: "DNS:localhost,DNS:*.localhost" });
  makeCertificate(custom, "shop.example", { names: "DNS:shop.example" });
  const relay = runProgram(
    cleanup,
    [
      "server",
      "--addr",
      "127.0.0.1:0",
      "--tls-dir",
      custom,
      "--tls-cert",
      join(folder, "wildcard.crt"),
      "--tls-key",
      join(folder, "wildcard.key"),
    ],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup), PLATFORM_LOG_FORMAT: "json" },
  );
  await waitFor(() => relay.out().includes('"msg":"ready"'));
  const port = Number(/"port":(\d+)/.exec(relay.out())![1]);
  assert.equal(await readCertificateName(port, "demo.localhost"), "wildcard");
  assert.equal(await readCertificateName(port, "shop.example"), "shop.example");
  const local = await startLocal(cleanup, (incoming, response) => {
    response.end(incoming.headers["x-forwarded-proto"]);
  });
  const client = runProgram(
    cleanup,
    [
      "client",
      `127.0.0.1:${local}`,
      "-s",
      "demo",
      "-i",
      "0",
      "--relay",
      `wss://localhost:${port}/ws/connect`,
      "--relay-ca",
      join(folder, "wildcard.crt"),
    ],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) },
  );
  await waitFor(() => client.out().includes(`https://demo.localhost:${port}`));
  const text = await new Promise<string>((resolve, reject) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        servername: "demo.localhost",
        ca: readFileSync(join(folder, "wildcard.crt")),
        // Wildcards directly below a top-level name are not accepted by default.
        checkServerIdentity: () => undefined,
        headers: { host: "demo.localhost" },
        agent: false,
      },
      (response) => {
        let body = "";
        response.on("data", (bytes) => void (body += String(bytes)));
        response.on("end", () => resolve(body));
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
  assert.equal(text, "https");
  makeCertificate(folder, "renewed", { names: "DNS:localhost,DNS:*.localhost" });
  copyFileSync(join(folder, "renewed.key"), join(folder, "wildcard.key"));
  copyFileSync(join(folder, "renewed.crt"), join(folder, "wildcard.crt"));
  relay.child.kill("SIGHUP");
  await waitFor(async () => (await readCertificateName(port, "demo.localhost")) === "renewed");
  assert.equal(client.out().includes("next attempt"), false, "open connections stay");
});

test("a client does not connect to a relay whose certificate it cannot verify", async () => {
  const folder = makeFolder(cleanup);
  makeCertificate(folder, "own", { names: "DNS:localhost" });
  const relay = runProgram(
    cleanup,
    [
      "server",
      "--addr",
      "127.0.0.1:0",
      "--tls-cert",
      join(folder, "own.crt"),
      "--tls-key",
      join(folder, "own.key"),
    ],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup), PLATFORM_LOG_FORMAT: "json" },
  );
  await waitFor(() => relay.out().includes('"msg":"ready"'));
  const port = Number(/"port":(\d+)/.exec(relay.out())![1]);
  await assert.rejects(
    dialRelay({
      relay: `wss://localhost:${port}/ws/connect`,
      token: "never-sent-to-strangers",
      ca: undefined,
      timeoutMs: 5_000,
      signal: new AbortController().signal,
    }),
    /self-signed certificate/,
  );
});

/** The code of the handshake's error. */
async function readFault(port: number, servername: string): Promise<string> {
  return readCertificateName(port, servername).catch((error: NodeJS.ErrnoException) =>
    String(error.code),
  );
}

test("without a certificate of its own, each name has that of the folder, which a gateway obtains", async () => {
  const folder = makeFolder(cleanup);
  const asked: string[] = [];
  const gateway = createTlsServer({
    SNICallback: (name, done) => {
      asked.push(name);
      done(new Error("no certificate yet"));
    },
  });
  gateway.on("tlsClientError", () => undefined);
  gateway.listen(0, "127.0.0.1");
  await once(gateway, "listening");
  cleanup.add(() => gateway.close());
  const relay = await startTestRelay(cleanup, {
    domain: "tunnel.test",
    tls_dir: folder,
    local_addr: "127.0.0.1:0",
    tls_gateway: `127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    auth_token: "secret-token",
  });
  const refused = "ERR_SSL_TLSV1_UNRECOGNIZED_NAME";
  const { port, localPort = 0 } = relay;
  assert.equal(await readFault(port, "demo.tunnel.test"), refused);
  const ask = async (domain: string, headers: Record<string, string> = {}): Promise<number> => {
    const url = `http://127.0.0.1:${localPort}/api/v1/certificates/ask?domain=${domain}`;
    const answer = await fetch(url, { headers });
    await answer.arrayBuffer();
    return answer.status;
  };
  assert.equal(await ask("demo.tunnel.test"), 404);
  const created = await fetch(`http://127.0.0.1:${localPort}/api/v1/tunnels`, {
    method: "POST",
    headers: { authorization: "Bearer secret-token", "content-type": "application/json" },
    body: JSON.stringify({ subdomain: "demo" }),
  });
  assert.equal(created.status, 201);
  assert.equal(((await created.json()) as { url: string }).url, `https://demo.tunnel.test:${port}`);
  for (const name of ["demo.tunnel.test", "tunnel.test", "DEMO.tunnel.test"]) {
    assert.equal(await ask(name), 200, name);
  }
  for (const name of ["other.tunnel.test", "a.demo.tunnel.test", "example.org", "127.0.0.1"]) {
    assert.equal(await ask(name), 404, name);
  }
  // Names cannot be guessed from elsewhere.
  assert.equal(await ask("demo.tunnel.test", { "x-forwarded-for": "192.0.2.1" }), 401);
  assert.equal(asked.length, 0, "names without a tunnel are not passed on");
  assert.equal(await readFault(port, "demo.tunnel.test"), refused);
  await waitFor(() => asked.includes("demo.tunnel.test"));
  assert.equal(await readFault(port, "demo.tunnel.test"), refused);
  assert.equal(await readFault(port, "other.tunnel.test"), refused);
  const made = makeCertificate(makeFolder(cleanup), "made", { names: "DNS:demo.tunnel.test" });
  const whole = `${readFileSync(made.cert, "utf8")}${readFileSync(made.key, "utf8")}`;
  writeFileSync(join(folder, "demo.tunnel.test.pem"), whole);
  await waitFor(async () => (await readFault(port, "demo.tunnel.test")) === "made");
  assert.equal(await readFault(port, "other.tunnel.test"), refused);
  assert.deepEqual(asked, ["demo.tunnel.test"], "once a minute");
});
