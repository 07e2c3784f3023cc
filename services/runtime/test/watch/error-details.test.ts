// Errors during development: the lines of the author's file on the terminal, and in answers to programs of this machine only.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test, type TestContext } from "node:test";
import { startProcess, stopRun, type Running } from "../fixture/run-process.ts";

const MAIN = resolve(import.meta.dirname, "../../../../bin/platform.js");
const root = mkdtempSync(join(tmpdir(), "details-"));
after(() => rmSync(root, { recursive: true }));
writeFileSync(
  join(root, "main.service.ts"),
  `database notes
const fail = (): never => {
  throw new TypeError("broken by s3cret");
};
export route GET /fail { return fail(); }
export route GET /query { return notes.all\`select * from nots\`; }
`,
);

const DETAILS = /development|s3cret|main\.service/;

async function start(t: TestContext, ...args: string[]): Promise<Running> {
  const variables = { HOST: "0.0.0.0", PLATFORM_LOG_FORMAT: "pretty" };
  return startProcess(t, process.execPath, [MAIN, "run", ...args], root, variables);
}

async function ask(url: string, headers: Record<string, string> = {}): Promise<string> {
  const sent = request(url, { agent: false, headers });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  assert.equal(answer.statusCode, 500);
  assert.match((JSON.parse(text) as { trace_id: string }).trace_id, /^[0-9a-f]{32}$/);
  return text;
}

test("in watch mode, errors have the author's lines, in answers only for programs of this machine", async (t) => {
  const running = await start(t, "--watch");
  const url = `${running.url}/fail`;
  const { development } = JSON.parse(await ask(url)) as {
    development: { message: string; at: string; lines: string[]; stack: string[] };
  };
  assert.equal(development.message, "TypeError: broken by s3cret");
  assert.equal(development.at, "main.service.ts:3:9");
  assert.deepEqual(development.lines.slice(2, 4), [
    '> 3 |   throw new TypeError("broken by s3cret");',
    "    |         ^",
  ]);
  assert.equal(development.stack.length, 2);
  await running.waitFor("    TypeError: broken by s3cret");
  await running.waitFor("    main.service.ts:3:9");
  await running.waitFor('    > 3 |   throw new TypeError("broken by s3cret");');
  assert.match(await ask(`${running.url}/query`), /"at":"main\.service\.ts:6:43"/);

  const refused: Record<string, string>[] = [
    { Host: "notes.example.com" },
    { Host: "notes.localhost:8080" },
    { "X-Forwarded-For": "127.0.0.1" },
    { Forwarded: "for=127.0.0.1" },
    { Via: "1.1 proxy" },
    { "X-Real-IP": "127.0.0.1" },
    { Origin: "http://localhost:1" },
    { "Sec-Fetch-Site": "cross-site" },
  ];
  for (const headers of refused) assert.doesNotMatch(await ask(url, headers), DETAILS);
  const own = Object.values(networkInterfaces()).flat();
  const other = own.find((one) => one?.family === "IPv4" && !one.internal)?.address;
  t.diagnostic(other === undefined ? "no other address: not tried" : `from ${other}`);
  if (other !== undefined) {
    const { port } = new URL(url);
    const remote = `http://${other}:${port}/fail`;
    assert.doesNotMatch(await ask(remote), DETAILS);
    assert.doesNotMatch(await ask(remote, { Host: `localhost:${port}` }), DETAILS);
  }
  await stopRun(running);
});

test("without watch mode, neither answers nor the log have lines of files", async (t) => {
  const running = await start(t);
  assert.doesNotMatch(await ask(`${running.url}/fail`), DETAILS);
  const line = await running.waitFor("request failed");
  assert.match(line, /error=/);
  assert.doesNotMatch(line, /frame/);
  await stopRun(running);
});
