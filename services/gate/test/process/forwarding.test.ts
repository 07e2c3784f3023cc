// Proxies in front of the gateway: whatever they send, all that learn of the client agree.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { startIssuer, CLIENT_ID } from "../fixture/oidc-issuer.ts";
import { serve } from "../fixture/serve.ts";

const CLIENT = "198.51.100.7";
const FIRST_PROXY = "10.0.0.9";
const PEER = "127.0.0.1";

interface Form {
  name: string;
  headers: Record<string, string>;
  /** The values that all consumers must see. */
  client: string;
  scheme: "http" | "https";
  host: string;
}

/** The client asks https://app.example; the last proxy asks the gateway by its inner name. */
const FORMS: readonly Form[] = [
  { name: "none", headers: {}, client: PEER, scheme: "http", host: "inner.test" },
  {
    name: "X-Forwarded only",
    headers: {
      "X-Forwarded-For": CLIENT,
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Host": "app.example",
    },
    client: CLIENT,
    scheme: "https",
    host: "app.example",
  },
  {
    name: "Forwarded only",
    headers: { Forwarded: `for=${CLIENT};host=app.example;proto=https` },
    client: CLIENT,
    scheme: "https",
    host: "app.example",
  },
  {
    name: "both",
    headers: {
      "X-Forwarded-For": CLIENT,
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Host": "app.example",
      Forwarded: `for="${CLIENT}:4711";host="app.example";proto=HTTPS`,
    },
    client: CLIENT,
    scheme: "https",
    host: "app.example",
  },
  {
    name: "two proxies, lists",
    headers: {
      "X-Forwarded-For": `192.0.2.66, ${CLIENT}, ${FIRST_PROXY}`,
      "X-Forwarded-Proto": "http, https, http",
      "X-Forwarded-Host": "evil.example, app.example, middle.test",
      "X-Forwarded-Port": "1, 443, 80",
      Forwarded: `for=192.0.2.66;host=evil.example;proto=http`,
    },
    client: CLIENT,
    scheme: "https",
    host: "app.example",
  },
  {
    name: "two proxies, Forwarded",
    headers: {
      Forwarded: `for=192.0.2.66;host=evil.example, for=${CLIENT};proto=https;host=app.example, for=${FIRST_PROXY};proto=http;host="middle.test"`,
    },
    client: CLIENT,
    scheme: "https",
    host: "app.example",
  },
];

test("the upstream's fields, the log and browser sign-in agree about the client", async (context) => {
  const folder = makeFolder(context);
  const issuer = await startIssuer(context);
  const server = createServer((request, response) => response.end(JSON.stringify(request.headers)));
  const target = await serve(context, server);
  const auth = { type: "oidc", issuer: `http://127.0.0.1:${issuer.port}`, client_id: CLIENT_ID };
  const gate = await startGate(context, {
    runtime: runtimesOfRules[0]!,
    folder,
    config: {
      workers: 1,
      trusted_proxies: ["127.0.0.0/8", "10.0.0.0/8"],
      access_log_path: join(folder, "access.jsonl"),
      routes: [
        { prefix: "/", target, access_log: true },
        { prefix: "/only", target, ip_allowlist: [CLIENT] },
        { prefix: "/in", target, auth },
      ],
    },
  });
  const { port } = gate;
  const ask = (path: string, headers: Record<string, string>) =>
    new Promise<{ status: number; headers: Record<string, unknown>; text: string }>(
      (resolve, reject) => {
        const all = { Host: "inner.test", ...headers };
        request({ host: PEER, port, path, headers: all, agent: false }, (response) => {
          let text = "";
          response.on("data", (piece) => (text += String(piece)));
          response.on("end", () =>
            resolve({ status: response.statusCode!, headers: response.headers, text }),
          );
        })
          .on("error", reject)
          .end();
      },
    );
  const readLog = (path: string): string | undefined =>
    readFileSync(join(folder, "access.jsonl"), { encoding: "utf8", flag: "a+" })
      .split("\n")
      .find((line) => line.includes(`"${path}"`));

  const rows: string[] = [];
  for (const [index, { name, headers, client, scheme, host }] of FORMS.entries()) {
    const expected = `${client} ${scheme} ${host}`;
    const fields = JSON.parse((await ask(`/log${index}`, headers)).text) as Record<string, string>;
    const first = (field: string): string => fields[field]?.split(",")[0]?.trim() ?? "";
    const x = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"].map(first).join(" ");
    const [, node, of, proto] =
      /^for=([^;,]+);host="([^"]+)";proto=(\w+)/.exec(fields["forwarded"] ?? "") ?? [];
    const forwarded = `${node} ${proto} ${of}`;
    assert.equal(
      fields["x-forwarded-for"]!.split(",").length,
      fields["forwarded"]!.split(/,(?=\s*for=)/).length,
      name,
    );
    let line: string | undefined;
    await waitFor(() => (line = readLog(`/log${index}`)) !== undefined, "the line");
    const logged = (JSON.parse(line!) as { client_ip: string }).client_ip;
    const admitted = (await ask("/only", headers)).status === 200;
    assert.equal(admitted, client === CLIENT, name);

    const page = { ...headers, "Sec-Fetch-Mode": "navigate" };
    const begin = new URL(String((await ask("/in", page)).headers["location"]), "http://x");
    const login = await ask(`${begin.pathname}${begin.search}`, page);
    const callback = new URL(String(login.headers["location"])).searchParams.get("redirect_uri")!;
    const isSecure = String(login.headers["set-cookie"]).includes("; Secure");
    assert.equal(isSecure, scheme === "https", name);
    const signIn = `${new URL(callback).protocol.slice(0, -1)} ${new URL(callback).host}`;

    rows.push([name, x, forwarded, logged, signIn].join(" | "));
    assert.deepEqual(
      [x, forwarded, logged, signIn],
      [expected, expected, client, `${scheme} ${host}`],
      name,
    );
    const shownPort = fields["x-forwarded-port"];
    assert.equal(shownPort, scheme === "https" ? "443" : String(port), name);
  }
  context.diagnostic("proxies send | X-Forwarded-* | Forwarded | log and lists | sign-in");
  for (const row of rows) context.diagnostic(row);
});
