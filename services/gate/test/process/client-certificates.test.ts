// Certificates of clients: who may use a route, and what its upstream gets.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { findFault } from "../fixture/find-fault.ts";
import { makeFolder, runtimes, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

interface Client {
  cert?: Buffer;
  key?: Buffer;
}

function makeClients(folder: string) {
  const authority = makeCertificate(folder, "authority");
  const server = makeCertificate(folder, "server", { names: "DNS:gate.test,IP:127.0.0.1" });
  const make = (name: string, names: string, signer = authority): Client => {
    const { cert, key } = makeCertificate(folder, name, { names, authority: signer });
    return { cert: readFileSync(cert), key: readFileSync(key) };
  };
  return {
    authority,
    server,
    clients: {
      nobody: {} as Client,
      device: make("device", "DNS:one.devices.test"),
      workload: make("workload", "URI:spiffe://mesh.test/ns/shop/sa/orders"),
      // Not a DNS name that ends with .devices.test.
      mail: make("mail", "email:x@one.devices.test"),
      foreign: make("foreign", "DNS:one.devices.test", makeCertificate(folder, "other")),
    },
  };
}

async function ask(port: number, path: string, client: Client, servername = "gate.test") {
  const options = {
    host: "127.0.0.1",
    port,
    path,
    servername,
    rejectUnauthorized: false,
    agent: false,
  };
  const headers = {
    "Client-Cert": ":Zm9yZ2Vk:",
    Client_Cert: ":Zm9yZ2Vk:",
    "Client-Cert-Chain": "x",
  };
  const asked = request({ ...options, ...client, headers }).end();
  const [answer] = (await once(asked, "response")) as [
    AsyncIterable<Buffer> & { statusCode: number },
  ];
  let text = "";
  for await (const piece of answer) text += piece.toString();
  return { status: answer.statusCode, text };
}

for (const runtime of runtimesOfRules) {
  test(
    `routes accept certificates by name, and upstreams get them (${runtime.name})`,
    { skip },
    async (context) => {
      const folder = makeFolder(context);
      const { authority, server, clients } = makeClients(folder);
      const echo = createServer(({ rawHeaders }, response) => {
        const lines = rawHeaders.filter((_, at) =>
          /^client.cert/i.test(rawHeaders[at - (at % 2)]!),
        );
        response.end(lines.join(" "));
      });
      const target = await serve(context, echo);
      const limited = { target, require_client_certificate: true };
      const gate = await startGate(context, {
        runtime,
        folder,
        config: {
          workers: 1,
          tls_cert: server.cert,
          tls_key: server.key,
          // A name with a certificate of its own takes another way through the handshake.
          certificates: [{ ...server, names: ["named.test"] }],
          client_certificates: { mode: "request", ca: authority.cert },
          routes: [
            { prefix: "/open", target },
            { prefix: "/any", ...limited },
            { prefix: "/devices", ...limited, client_certificate_names: ["*.devices.test"] },
            {
              prefix: "/shop",
              ...limited,
              client_certificate_names: ["spiffe://mesh.test/ns/shop/*"],
            },
          ],
        },
      });
      const expected: [path: string, allowed: string[]][] = [
        ["/open", ["nobody", "device", "workload", "mail", "foreign"]],
        ["/any", ["device", "workload", "mail"]],
        ["/devices", ["device"]],
        ["/shop", ["workload"]],
      ];
      for (const servername of ["gate.test", "named.test"]) {
        for (const [path, allowed] of expected) {
          for (const [name, client] of Object.entries(clients)) {
            const { status, text } = await ask(gate.port, path, client, servername);
            const label = `${name} ${path} ${servername}`;
            assert.equal(status, allowed.includes(name) ? 200 : 403, `${label}: ${text}`);
            if (status === 403) assert.match(text, /"code":"forbidden"/);
            else assert.equal(text, describeField(folder, name), label);
          }
        }
      }
    },
  );
}

/** The field of a client's certificate as its upstream sees it; empty without one. */
function describeField(folder: string, name: string): string {
  if (name === "nobody" || name === "foreign") return "";
  const pem = readFileSync(join(folder, `${name}.crt`), "utf8");
  return `Client-Cert :${pem.replace(/-----[^-]+-----|\s/g, "")}:`;
}

test(
  "required certificates: others are refused in the handshake, and sessions keep theirs",
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const { authority, server, clients } = makeClients(folder);
    const gate = await startGate(context, {
      runtime: runtimes[0]!,
      folder,
      config: {
        workers: 2,
        tls_cert: server.cert,
        tls_key: server.key,
        client_certificates: { mode: "require", ca: authority.cert },
        routes: [{ prefix: "/", require_client_certificate: true, respond: { status: 204 } }],
      },
    });
    for (const client of [clients.nobody, clients.foreign]) {
      await assert.rejects(ask(gate.port, "/", client));
    }
    assert.equal((await ask(gate.port, "/", clients.device)).status, 204);
    // A resumed session has the certificate of its first handshake.
    const options = {
      host: "127.0.0.1",
      port: gate.port,
      servername: "gate.test",
      rejectUnauthorized: false,
    };
    let session: Buffer | undefined;
    for (let round = 0; round < 4; round++) {
      const socket: TLSSocket = connect({
        ...options,
        ...clients.device,
        ...(session && { session }),
      });
      socket.on("session", (fresh: Buffer) => (session = fresh));
      await once(socket, "secureConnect");
      assert.equal(socket.isSessionReused(), round > 0);
      socket.write("GET / HTTP/1.1\r\nHost: gate.test\r\nConnection: close\r\n\r\n");
      let text = "";
      for await (const piece of socket) text += String(piece);
      assert.match(text, /^HTTP\/1\.1 204 /);
    }
  },
);

test("settings of client certificates that cannot work are refused", { skip }, async (context) => {
  const folder = makeFolder(context);
  const { authority, server } = makeClients(folder);
  const tls = { tls_cert: server.cert, tls_key: server.key };
  const route = { prefix: "/", require_client_certificate: true, respond: { status: 204 } };
  const settings = { mode: "request", ca: authority.cert };
  const faults: [config: Record<string, unknown>, says: RegExp][] = [
    [{ client_certificates: settings }, /client_certificates: requires TLS/],
    [{ ...tls, routes: [route] }, /require_client_certificate.*requires `client_certificates`/],
    [
      { ...tls, client_certificates: { ...settings, ca: server.key } },
      /client_certificates\.ca: .*has no certificate/,
    ],
  ];
  for (const [config, says] of faults) assert.match(await findFault(config), says);
  const valid = { ...tls, client_certificates: settings, routes: [route] };
  assert.equal(await findFault(valid), "");
});
