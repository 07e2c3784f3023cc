// The admin feeds of every service under `platform up`, read with one sign-in of an administrator.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { find } from "@platform/testing/platform-process";
import { joinPlatform, readCredentials } from "./running-platform.ts";

interface Listener {
  name: string;
  port: number;
}

test("figures, conditions and live updates of all services with one token", async () => {
  const platform = await joinPlatform();
  const { started } = platform;
  const password = readCredentials(platform)["PLATFORM_AUTH_ADMIN_PASSWORD"];
  const auth = find(started, "auth");
  const login = await fetch(`${auth.url}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "root", password }),
  });
  const { access_token: token } = (await login.json()) as { access_token: string };
  const vault = find(started, "vault") as unknown as { listeners: Listener[] };
  const vaultAdmin = vault.listeners.find(({ name }) => name === "admin")!;
  const services: [name: string, url: string, figure: string][] = [
    ["gate", find(started, "gate").url, "requests"],
    ["auth", auth.url, "sign_ins"],
    ["pulse", find(started, "pulse").url, "published"],
    ["notify", find(started, "notify").url, "queued"],
    ["tunnel", find(started, "tunnel").url, "tunnels"],
    ["vault", `http://localhost:${vaultAdmin.port}`, "objects"],
    ["runtime", started.api_url, "services_running"],
  ];
  for (const [name, url, figure] of services) {
    const get = async (path: string, headers: Record<string, string>) => {
      const answer = await fetch(`${url}/api/v1/admin/${path}`, { headers });
      return { status: answer.status, body: JSON.parse(await answer.text()) };
    };
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await get("series", {})).status, 401, name);
    const { status, body } = await get(`series?names=${figure},memory&step=1`, headers);
    assert.equal(status, 200, `${name}: ${JSON.stringify(body)}`);
    assert.equal(body.series.length, 2, name);
    assert.deepEqual((await get("attention", headers)).body, [], name);

    const refused = new WebSocket(`${url.replace("http", "ws")}/api/v1/admin/live`);
    const [event] = await once(refused, "close");
    assert.equal((event as CloseEvent).code, 1006, `${name} without a token`);
    const types = await readLive(`${url.replace("http", "ws")}/api/v1/admin/live`, headers);
    assert.deepEqual(types, ["hello", "figures"], name);
    const { values } = (await get("series", headers)).body;
    assert.ok(values.memory > 1_000_000, name);
  }
});

/** The types of the first two messages. */
async function readLive(url: string, headers: Record<string, string>): Promise<string[]> {
  // Node's WebSocket accepts headers, which browsers do not.
  const socket = new WebSocket(url, { headers });
  const types: string[] = [];
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("error", () => reject(new Error(`${url} was refused`)));
    socket.addEventListener("message", ({ data }) => {
      types.push((JSON.parse(String(data)) as { type: string }).type);
      if (types.length === 2) resolve();
    });
  });
  socket.close();
  return types;
}
