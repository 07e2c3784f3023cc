// `platform up --console-addr shared`: the console on the gateway's listener, at a host of its own.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { text } from "node:stream/consumers";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";

const at = anyPort.indexOf("--console-addr");
const ports = anyPort.toSpliced(at, 2);

/** Requests a path of the gateway at a host. */
async function ask(port: string, host: string, path: string) {
  const call = request({ port, path, host: "127.0.0.1", headers: { host } }).end();
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  const { statusCode: status, headers } = answer;
  return { status, location: headers.location ?? "", body: await text(answer) };
}

test("the shared console has a host of its own, people sign in there, and other hosts keep their routes", async () => {
  const data = makeFolder();
  const shared = ["--only", "gateway,identity", "--console-addr", "shared"];
  const up = run(["up", "--json", "--data", data, ...shared, ...ports]);
  const started = await up.waitFor(findStarted);
  const commands = started.try.map(({ command }) => command).join("\n");
  assert.doesNotMatch(commands, /--bucket|--topic/, "services that do not run are not suggested");
  const gateway = find(started, "gate");
  const { port } = new URL(gateway.url);
  const host = `console.localhost:${port}`;
  const { console_url: url } = started as unknown as { console_url: string };
  assert.equal(url, `http://${host}`);
  assert.deepEqual(
    gateway.listeners.map(({ name }) => name),
    ["http"],
    "no second port",
  );
  const root = await ask(port, host, "/");
  assert.deepEqual([root.status, root.location], [302, `${url}/ui/`]);
  assert.equal((await ask(port, host, "/console/session")).status, 401);

  const start = await ask(port, host, "/console/oidc/start");
  const authorize = new URL(start.location);
  assert.equal(authorize.origin, find(started, "auth").url);
  assert.equal(authorize.searchParams.get("redirect_uri"), `${url}/console/oidc/callback`);
  const signIn = await fetch(authorize, { redirect: "manual" });
  assert.match(signIn.headers.get("location") ?? "", /interaction|login/, "identity returns there");

  assert.match((await ask(port, `localhost:${port}`, "/hello")).body, /hello/i);
  assert.notEqual((await ask(port, host, "/hello")).status, 200, "no page of another program");
  const index = await ask(port, `localhost:${port}`, "/");
  assert.equal(index.status, 200);
  assert.match(index.body, /<title>platform<\/title>/, "the index page stays");
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0);
});

const refused: [name: string, args: string[], message: RegExp][] = [
  [
    "the host of all other routes",
    ["--console-url", "http://localhost:8080"],
    /the console would take localhost from all routes; choose another with --console-url/,
  ],
  [
    "the host of a service",
    ["--console-url", "https://identity.example.com", "--domain", "example.com"],
    /identity\.example\.com is the host of identity, whose pages could act as the console/,
  ],
  [
    "a path",
    ["--console-url", "https://example.com/console"],
    /has more than a scheme, a host and a port/,
  ],
];
for (const [name, args, message] of refused) {
  test(`a shared console is refused at ${name}, before anything is written`, async () => {
    const data = join(makeFolder(), "data");
    const up = run(["up", "--data", data, "--console-addr", "shared", ...args, ...ports]);
    assert.equal(await up.exit, 1);
    assert.match(up.output().err, message);
    assert.ok(!existsSync(data));
  });
}
