// Changes of a running service under load.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, get, type ClientRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startRun, stopRun } from "../fixture/run-process.ts";

const root = mkdtempSync(join(tmpdir(), "watch-"));
after(() => rmSync(root, { recursive: true }));

/** Valid changes; the long form has 50. Every third to fifth is preceded by a broken one. */
const CHANGES = Number(process.env["PLATFORM_WATCH_CHANGES"] ?? 5);
const BROKEN = Math.min(3, Math.ceil(CHANGES / 5));
/** Answers of an old version end after this time. The short form runs beside other tests. */
const LATE_MS_MAX = CHANGES >= 50 ? 1_000 : 30_000;

test("changes under load: every request is answered, with a version that is not outdated", async (t) => {
  const file = join(root, "watched.service.ts");
  const write = (version: number): void => writeFileSync(file, formatVersion(version));
  write(0);
  const running = await startRun(t, root, "watched.service.ts", "--watch");
  await running.waitFor("running on");
  const wrk = startWrk(t, running.url);
  const load = new Load(running.url);
  t.after(() => load.stop());
  for (let version = 1; version <= CHANGES; version++) {
    const { pid } = (await (await fetch(running.url)).json()) as { pid: number };
    const stream = await openStream(`${running.url}/events`, `data: ${version - 1}`);
    if (version % Math.floor(CHANGES / BROKEN) === 0) {
      writeFileSync(file, "export route FETCH / { }\n");
      await running.waitFor("the running version stays");
    }
    load.expect(version);
    write(version);
    await running.waitFor("reloaded on");
    await stream.end;
    await awaitExit(pid);
  }
  await load.stop();
  assert.deepEqual(load.failures.slice(0, 5), []);
  assert.ok(load.answers > 100, `${load.answers} answers`);
  assert.ok(load.latestMs < LATE_MS_MAX, `an old answer ${load.latestMs} ms after a save`);
  t.diagnostic(
    `${CHANGES} changes, ${BROKEN} broken: ${load.answers} answers checked, the last old one ${Math.round(load.latestMs)} ms after a save`,
  );
  const report = await wrk?.stop();
  if (report !== undefined) {
    t.diagnostic(report.replaceAll("\n", "; "));
    assert.doesNotMatch(report, /Socket errors|Non-2xx/);
  }
  writeFileSync(file, "const no = 1;\n");
  await running.waitFor("declares no route and no schedule");
  await stopRun(running);
});

test("type errors are shown beside a service that runs, and so is that they are gone", async (t) => {
  const file = join(root, "typed.service.ts");
  writeFileSync(file, 'const port: number = "3000";\nexport route GET / { return port }\n');
  const running = await startRun(t, root, "typed.service.ts", "--watch");
  assert.equal(await (await fetch(running.url)).text(), "3000", "it runs");
  await running.waitFor("typed.service.ts:1:7: Type 'string' is not assignable to type 'number'.");
  await running.waitFor('1 | const port: number = "3000";');
  await running.waitFor("platform: 1 error; the service runs nevertheless");
  writeFileSync(file, 'const port: string = "3000";\nexport route GET / { return port }\n');
  await running.waitFor("platform: no type errors");
  await stopRun(running);
});

test("a service that exits by itself is replaced, and connections wait; soon after its start once", async (t) => {
  const file = join(root, "exits.service.ts");
  const write = (version: number): void =>
    writeFileSync(
      file,
      `export route GET / { return ${version} }
export route GET /exit { setTimeout(() => { throw new Error("detached") }); return "answered" }
export route GET /reject { void (async () => { throw new Error("lost") })(); return "answered" }
`,
    );
  write(1);
  const running = await startRun(t, root, "exits.service.ts", "--watch");
  const exit = async (path: string, place: string): Promise<void> => {
    const answer = await fetch(running.url + path, { headers: { Connection: "close" } });
    assert.equal(await answer.text(), "answered");
    await running.waitFor(place);
  };
  await running.waitFor("running on");
  // Clients from before to after the replacement, each with a connection of its own.
  const clients = (async () => {
    const answers: string[] = [];
    for (const endMs = performance.now() + 1_500; performance.now() < endMs; await sleep(5)) {
      const answer = await fetch(running.url, { headers: { Connection: "close" } });
      answers.push(await answer.text());
    }
    return answers;
  })();
  await exit("/exit", "exits.service.ts:2:");
  await running.waitFor("the service exited (code 1): starting it again");
  await running.waitFor("running on");
  assert.deepEqual([...new Set(await clients)], ["1"]);
  await exit("/reject", "exits.service.ts:3:");
  await running.waitFor("the service exited (code 1): waiting for a change");
  await assert.rejects(fetch(running.url), "connections wait for a process that starts only");
  write(2);
  const port = /localhost:(\d+)/.exec(await running.waitFor("running on"))![1];
  running.url = `http://127.0.0.1:${port}`;
  assert.equal(await (await fetch(running.url)).text(), "2");
  await stopRun(running);
});

function formatVersion(version: number): string {
  return `import { events } from "@platform/service";
export route GET / { return { version: ${version}, pid: process.pid } }
export route GET /events {
  return events(async function* (signal) {
    yield { data: "${version}" };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  });
}
`;
}

/** Clients with and without persistent connections, which check the version of every answer. */
class Load {
  readonly failures: string[] = [];
  answers = 0;
  /** Longest time between a save and the beginning of a request that an older version answered, in ms. */
  latestMs = 0;
  readonly #url: string;
  readonly #savedAtMs = [0];
  readonly #over = new AbortController();
  readonly #clients: Promise<void>[];

  constructor(url: string) {
    this.#url = url;
    this.#clients = [false, false, true, true].map((keepAlive) => this.#run({ keepAlive }));
  }

  /** The next version is saved now. */
  expect(version: number): void {
    this.#savedAtMs[version] = performance.now();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#clients);
  }

  async #run({ keepAlive }: { keepAlive: boolean }): Promise<void> {
    // A pool of its own: the request after the one of another client would find a connection that is not new.
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    while (!this.#over.signal.aborted) {
      const beganMs = performance.now();
      try {
        this.#check(await fetchVersion(this.#url, agent), beganMs);
      } catch (error) {
        this.failures.push(`${keepAlive ? "kept" : "new"} connection: ${String(error)}`);
      }
      await sleep(2);
    }
    agent.destroy();
  }

  #check(version: number, beganMs: number): void {
    this.answers += 1;
    if (this.#savedAtMs[version] === undefined) this.failures.push(`version ${version}`);
    const replacedMs = this.#savedAtMs[version + 1] ?? Infinity;
    this.latestMs = Math.max(this.latestMs, beganMs - replacedMs);
  }
}

/**
 * Requests the version. A server may close an idle persistent connection while a request is sent: like other clients, this
 * one repeats a GET then (RFC 9112 section 9.3.1), but never one on a new connection.
 */
async function fetchVersion(url: string, agent: Agent): Promise<number> {
  const request = get(url, { agent });
  try {
    return await readVersion(request);
  } catch (error) {
    if (!request.reusedSocket) throw error;
    return fetchVersion(url, agent);
  }
}

async function readVersion(request: ClientRequest): Promise<number> {
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk as string;
  return (JSON.parse(text) as { version: number }).version;
}

/** More load, if `wrk` is installed: it reports failed requests, but cannot check versions over time. */
function startWrk(t: TestContext, url: string): { stop: () => Promise<string> } | undefined {
  if (spawnSync("wrk", ["-v"]).error !== undefined) return undefined;
  const wrk = spawn("wrk", ["-t1", "-c8", "-d1h", "--timeout", "30s", url]);
  t.after(() => wrk.kill("SIGKILL"));
  let report = "";
  wrk.stdout.on("data", (data: Buffer) => void (report += data.toString()));
  const exited = once(wrk, "exit");
  return {
    stop: async () => {
      // It prints its report.
      wrk.kill("SIGINT");
      await exited;
      return report;
    },
  };
}

/** Opens an event stream and reads until `first`; `end` resolves when the server has ended it, and rejects if it broke off. */
async function openStream(url: string, first: string): Promise<{ end: Promise<void> }> {
  const { body } = await fetch(url);
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes(first)) {
    const { value, done } = await reader.read();
    assert.ok(!done, `ended after ${text}`);
    text += value;
  }
  const readOn = async (): Promise<void> => {
    for (let result = await reader.read(); !result.done;) result = await reader.read();
  };
  return { end: readOn() };
}

/** Waits for the exit of a process that drains. */
async function awaitExit(pid: number): Promise<void> {
  const endsMs = performance.now() + 60_000;
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    assert.ok(performance.now() < endsMs, "the old process has not exited");
    await sleep(20);
  }
}
