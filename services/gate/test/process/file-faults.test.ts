// Every file that the gateway writes × every fault: routes, API keys, the policy and revoked users are whole, or the loss is told.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";
import { runFaultMatrix } from "@platform/testing/faults";
import { runtimes, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const TOKEN = "the-operator-token-of-this-test";
const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const operator = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };

/** Tokens that were issued before their users were revoked; the same in each cell. */
const tokens = ["user-1", "user-2"].map((username) => {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const nowSeconds = Math.floor(Date.now() / 1000);
  const claims = { sub: username, username, iat: nowSeconds - 100, exp: nowSeconds + 36_000 };
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  const signature = createHmac("sha256", SECRET).update(signed).digest("base64url");
  return { Authorization: `Bearer ${signed}.${signature}` };
});

test("no fault of a file that the gateway writes is silent", async (t) => {
  const target = await serve(
    t,
    createServer((_request, response) => response.end("{}")),
  );
  const config = {
    workers: 1,
    auth_token: TOKEN,
    jwt_secret: SECRET,
    routes: [
      { prefix: "/keys", target, require_api_key: true },
      { prefix: "/users", target },
      { prefix: "/open", target, auth: { type: "none" } },
    ],
  };
  const keys: string[] = [];
  let isRecorded = false;
  await runFaultMatrix(t, {
    // The operator's own.
    isForeign: (file) => file === "gate.json",
    async start(folder) {
      const gate = await startGate(t, { runtime: runtimes[0]!, folder, config });
      const send = async (method: string, path: string, body?: unknown) => {
        const answer = await fetch(`${gate.url}${path}`, {
          method,
          headers: operator,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        const text = await answer.text();
        assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
        return (/^[[{]/.test(text) ? JSON.parse(text) : {}) as Record<string, unknown>;
      };
      const ask = async (path: string, headers: Record<string, string> = {}) =>
        (await fetch(`${gate.url}${path}`, { headers })).status;
      return {
        async write(round) {
          for (let number = 0; number < 3; number++) {
            const { key } = await send("POST", "/api/v1/admin/api-keys", { tenant: "acme" });
            if (!isRecorded) keys.push(String(key));
          }
          const prefix = `/route-${round}`;
          await send("POST", "/api/v1/routes", { prefix, target, auth: { type: "none" } });
          await send("POST", "/api/v1/admin/policy/revoke", { username: `user-${round}` });
          const rules = [1, 2, 3]
            .slice(0, round)
            .map((one) => ({ effect: "deny", path: `/open/${one}*` }));
          await send("POST", "/api/v1/admin/policy/reload", { rules });
        },
        async read() {
          isRecorded = true;
          const statuses: number[] = [];
          for (const key of keys) statuses.push(await ask("/keys", { "X-API-Key": key }));
          for (const token of tokens) statuses.push(await ask("/users", token));
          for (const path of ["/route-1", "/route-2", "/open/1", "/open/2"])
            statuses.push(await ask(path));
          const routes = (await send("GET", "/api/v1/routes")) as never as { prefix: string }[];
          return [
            statuses,
            routes.map(({ prefix }) => prefix),
            await send("GET", "/api/v1/admin/api-keys"),
          ];
        },
        async readReports() {
          const ready = await fetch(`${gate.url}/readyz`);
          const text = await ready.text();
          const lines = gate.lines().filter(({ level }) => level === "warn" || level === "error");
          return [
            ...lines.map((line) => JSON.stringify(line)),
            ...(ready.status === 200 ? [] : [text]),
          ].join("\n");
        },
        async stop() {
          gate.signal("SIGTERM");
          await gate.ended;
        },
      };
    },
  });
});
