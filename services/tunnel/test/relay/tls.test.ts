// TLS of the relay: certificates by name, hot reload, encrypted clients.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "node:tls";
import { makeCertificate } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { dialRelay } from "../../src/client/dial.ts";
import { Cleanup, startLocal } from "../fixture/stage.ts";
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
