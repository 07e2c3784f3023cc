// Certificates of services: verified, except on this machine.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { WebSocketServer } from "ws";
import type { LiveMessage } from "@platform/console/contract";
import { makeCertificate } from "@platform/testing/certificates";
import { TOKEN } from "../stage.ts";
import { start } from "./front-stage.ts";

/** Starts a service with a certificate for another name that nobody has signed. */
async function startTlsService(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "console-tls-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { key, cert } = makeCertificate(folder, "mail.example.com");
  const seen: string[] = [];
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(cert) },
    (request, response) => {
      seen.push(`${request.url} ${request.headers.authorization ?? ""}`);
      const services = [{ version: "1", features: [], credentials: "token" }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ services }));
    },
  );
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (client) => client.send(JSON.stringify({ type: "hello" })));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    sockets.clients.forEach((client) => client.terminate());
    server.closeAllConnections();
    server.close();
  });
  return { seen, port: (server.address() as AddressInfo).port };
}

test("a service of this machine may have a certificate for its public name", async (t) => {
  const { seen, port } = await startTlsService(t);
  const { call, open, signIn, url } = await start(t, [
    { id: "notify", url: `https://127.0.0.1:${port}` },
  ]);
  const cookie = await signIn("notify");
  assert.equal((await call("GET", "/svc/notify/api/v1/a", undefined, { cookie })).status, 200);
  assert.ok(seen.includes(`/api/v1/a Bearer ${TOKEN}`));
  const live = open("/console/live", { cookie, origin: url });
  const [data] = (await once(live, "message")) as [Buffer];
  assert.equal((JSON.parse(data.toString()) as LiveMessage).type, "hello");
  live.terminate();
});

test("elsewhere an unverified certificate receives no credentials", async (t) => {
  const { seen, port } = await startTlsService(t);
  // Leads to the same listener under a name that is not this machine's.
  const { call } = await start(t, [{ id: "notify", url: `https://0.0.0.0:${port}` }]);
  const login = await call("POST", "/console/login", { service: "notify", token: TOKEN });
  assert.deepEqual([login.status, login.body.reason], [502, "service_down"]);
  assert.deepEqual(seen, []);
});
