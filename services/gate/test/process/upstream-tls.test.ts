// The gateway as a process between TLS clients and an upstream that requires a client certificate.
import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import { createServer, request } from "node:https";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import {
  type GateProcess,
  makeFolder,
  runtimesOfRules,
  startGate,
} from "../fixture/gate-process.ts";

/** Answers with the name in the client's certificate; without one by `ours` the handshake fails. */
async function startUpstream(context: TestContext, folder: string, identity: string) {
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  const requests: string[] = [];
  const server = createServer(
    {
      key: read(`${identity}.key`),
      cert: read(`${identity}.crt`),
      ca: read("ours.crt"),
      requestCert: true,
      rejectUnauthorized: true,
      keepAliveTimeout: 120_000,
    },
    (incoming, response) => {
      requests.push(`${incoming.method} ${incoming.url}`);
      response.end(String((incoming.socket as TLSSocket).getPeerCertificate().subject.CN));
    },
  ).listen(0, "127.0.0.1");
  // A refused client is what some of the tests are about.
  server.on("tlsClientError", () => undefined);
  await once(server, "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `https://localhost:${(server.address() as AddressInfo).port}`, requests };
}

async function ask(
  gate: { port: number },
  path: string,
  ca: Buffer,
  method = "GET",
): Promise<{ status: number; body: string }> {
  const options = { host: "127.0.0.1", port: gate.port, path, method, agent: false, ca };
  const sent = request({ ...options, servername: "localhost" });
  sent.end(method === "POST" ? "body" : undefined);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of answer.setEncoding("utf8")) body += String(chunk);
  return { status: answer.statusCode ?? 0, body };
}

/** Reloads and waits for the outcome, of which there have been `before`. */
async function reload(gate: GateProcess): Promise<string> {
  const isOutcome = ({ msg }: { msg: string }): boolean =>
    msg === "configuration reloaded" || /nothing has changed/.test(msg);
  const before = gate.lines().filter(isOutcome).length;
  gate.signal("SIGHUP");
  let count = 0;
  await gate.waitForLine((line) => {
    count = gate.lines().filter(isOutcome).length;
    return count > before && line.msg !== "";
  });
  return gate.lines().findLast(isOutcome)?.msg ?? "";
}

for (const runtime of runtimesOfRules) {
  test(
    `${runtime.name}: TLS on both sides: the upstream sees the client certificate of the route, and its successor after a reload`,
    { skip },
    async (context) => {
      const folder = makeFolder(context);
      const ours = makeCertificate(folder, "ours");
      const foreign = makeCertificate(folder, "foreign");
      const names = "DNS:localhost";
      for (const name of ["backend", "gateway", "one", "two"]) {
        makeCertificate(folder, name, { names, authority: ours });
      }
      for (const name of ["stranger", "impostor"]) {
        makeCertificate(folder, name, { names, authority: foreign });
      }
      const upstream = await startUpstream(context, folder, "backend");
      const impostor = await startUpstream(context, folder, "impostor");
      const path = (name: string): string => join(folder, name);
      const use = (name: string): void => {
        copyFileSync(path(`${name}.crt`), path("client.crt"));
        copyFileSync(path(`${name}.key`), path("client.key"));
      };
      use("one");
      const root_ca_path = ours.cert;
      const client = {
        client_cert_path: path("client.crt"),
        client_key_path: path("client.key"),
      };
      const stranger = {
        client_cert_path: path("stranger.crt"),
        client_key_path: path("stranger.key"),
      };
      const target = upstream.url;
      const gate = await startGate(context, {
        runtime,
        folder,
        config: {
          workers: 1,
          tls_cert: path("gateway.crt"),
          tls_key: path("gateway.key"),
          routes: [
            { prefix: "/", target, root_ca_path, ...client },
            { prefix: "/without", target, root_ca_path },
            { prefix: "/stranger", target, root_ca_path, ...stranger },
            { prefix: "/impostor", target: impostor.url, root_ca_path, ...client },
            { prefix: "/unknown-authority", target, ...client },
          ],
        },
      });
      const ca = readFileSync(root_ca_path);
      for (let round = 0; round < 2; round++) {
        assert.deepEqual(await ask(gate, "/a", ca), { status: 200, body: "one" });
      }

      const refused = ["/without", "/stranger", "/impostor", "/unknown-authority"];
      for (const prefix of refused) {
        for (const method of ["GET", "POST"]) {
          const answer = await ask(gate, prefix, ca, method);
          assert.equal(answer.status, 502, `${method} ${prefix}: ${answer.body}`);
        }
      }
      assert.deepEqual(upstream.requests, ["GET /a", "GET /a"]);
      assert.deepEqual(impostor.requests, []);
      // One target whose handshakes fail on another route is not out of traffic on this one.
      assert.deepEqual(await ask(gate, "/a", ca), { status: 200, body: "one" });

      use("two");
      assert.deepEqual(await ask(gate, "/a", ca), { status: 200, body: "one" });
      assert.equal(await reload(gate), "configuration reloaded");
      assert.deepEqual(await ask(gate, "/a", ca), { status: 200, body: "two" });

      copyFileSync(path("one.key"), path("client.key"));
      assert.match(await reload(gate), /nothing has changed/);
      assert.deepEqual(await ask(gate, "/a", ca), { status: 200, body: "two" });
    },
  );
}
