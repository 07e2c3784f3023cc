// Proxies in front of the gateway.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "ws";
import { awaitPort, findFreePort } from "../stage/process.ts";
import { writeNginxConfig } from "../stage/nginx.ts";
import { findProgram, readProgramVersion } from "../stage/program.ts";
import type { RealClient, Scene } from "./client.ts";

const nginxInFront: RealClient = {
  name: "nginx as a proxy",
  side: "in front",
  debianPackage: "nginx-light",
  readVersion: () => readProgramVersion("nginx", ["-v"]),
  shows:
    "keep-alive connections to the gateway, nginx's `X-Forwarded-For` trusted, WebSocket through nginx and the gateway",
  exercise: async (scene) => {
    const port = await findFreePort();
    const config = writeNginxConfig(join(scene.stage.folder, "nginx-in-front"), {
      http: `upstream gate { server 127.0.0.1:${scene.gateway.port}; keepalive 8; }
       map $http_upgrade $connection_field { default upgrade; "" ""; }
       server {
         listen 127.0.0.1:${port};
         location / {
           proxy_pass http://gate;
           proxy_http_version 1.1;
           proxy_set_header Host $http_host;
           proxy_set_header Upgrade $http_upgrade;
           proxy_set_header Connection $connection_field;
           proxy_set_header X-Forwarded-For 203.0.113.9;
         }
       }`,
    });
    await awaitPort(scene.stage.start({ name: "nginx", ...config }), port);
    await checkThroughBoth(`http://127.0.0.1:${port}`, /^203\.0\.113\.9, 127\.0\.0\.1$/);
  },
};

const haproxyInFront: RealClient = {
  name: "HAProxy",
  side: "in front",
  debianPackage: "haproxy",
  readVersion: () => readProgramVersion("haproxy", ["-v"]),
  shows:
    "health check on `/healthz`, reused connections, WebSocket through HAProxy and the gateway",
  exercise: async (scene) => {
    const port = await findFreePort();
    const folder = join(scene.stage.folder, "haproxy");
    mkdirSync(folder);
    const path = join(folder, "haproxy.cfg");
    writeFileSync(path, writeHaproxyConfig(port, scene));
    const command = findProgram("haproxy") ?? "haproxy";
    await awaitPort(
      scene.stage.start({ name: "haproxy", command, args: ["-db", "-q", "-f", path] }),
      port,
    );
    await checkThroughBoth(`http://127.0.0.1:${port}`, /^127\.0\.0\.1, 127\.0\.0\.1$/);
  },
};

/** Proxies, in the order of the table. */
export const PROXIES: readonly RealClient[] = [nginxInFront, haproxyInFront];

async function checkThroughBoth(url: string, forwardedFor: RegExp): Promise<void> {
  for (let request = 0; request < 20; request += 1) {
    const response = await fetch(`${url}/echo`, { method: "POST", body: "y".repeat(5_000) });
    assert.equal(response.status, 200);
    const seen = (await response.json()) as { bodyBytes: number; headers: Record<string, string> };
    assert.equal(seen.bodyBytes, 5_000);
    assert.match(seen.headers["x-forwarded-for"] ?? "", forwardedFor);
  }
  const socket = new WebSocket(`${url.replace("http", "ws")}/socket`);
  await once(socket, "open");
  const received = once(socket, "message") as Promise<[Buffer]>;
  socket.send("through both");
  assert.equal((await received)[0].toString(), "through both");
  socket.close();
  await once(socket, "close");
}

function writeHaproxyConfig(port: number, scene: Scene): string {
  return `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout tunnel 30s
frontend front
  bind 127.0.0.1:${port}
  option forwardfor
  default_backend gate
backend gate
  http-reuse always
  option httpchk GET /healthz
  http-check expect status 200
  server gate 127.0.0.1:${scene.gateway.port} check inter 200ms
`;
}
