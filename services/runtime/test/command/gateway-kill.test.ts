// `platform up` while its gateway is killed with SIGKILL under load.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { Agent, createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import {
  anyPort,
  find,
  findStarted,
  isAlive,
  makeFolder,
  run,
} from "@platform/testing/platform-process";

/** Sends requests in loops on persistent connections; counts answers, broken requests and statuses. */
function startLoad(url: string) {
  const run = { isOver: false };
  const statuses = new Set<number>();
  const counts = { answered: 0, broken: 0 };
  const agent = new Agent({ keepAlive: true });
  const clients = Array.from({ length: 8 }, async () => {
    while (!run.isOver) {
      try {
        const [answer] = (await once(get(url, { agent }), "response")) as [IncomingMessage];
        answer.resume();
        await once(answer, "end");
        statuses.add(answer.statusCode ?? 0);
        counts.answered++;
      } catch {
        counts.broken++;
        await sleep(20);
      }
    }
  });
  const end = async (): Promise<void> => {
    run.isOver = true;
    await Promise.all(clients);
    agent.destroy();
  };
  return { statuses, counts, end };
}

interface Event {
  msg?: string;
  part?: string;
  outcome?: string;
  restart_in_ms?: number;
}

function listRestarts(text: string): Event[] {
  return text
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Event)
    .filter(({ msg }) => msg === "exited unexpectedly; restarting");
}

const skip = process.platform === "linux" ? false : "processes are listed from /proc";

/** The main module of the gateway, or of its built form. */
const GATEWAY = /\/services\/(?:gate\/src\/main\.ts|\w+\/gate\.js)/;

/** Returns the children of a process whose command line matches. */
function listChildren(pid: number, command: RegExp): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return children
    .split(" ")
    .filter((child) => child.trim() !== "")
    .map(Number)
    .filter((child) => command.test(readFileSync(`/proc/${child}/cmdline`, "utf8")));
}

test(
  "a gateway killed under load restarts on its port with all routes, those of its API included, and leaves no files",
  { skip },
  async (context) => {
    const target = createServer((_request, response) => response.end("target"));
    target.listen(0, "127.0.0.1");
    await once(target, "listening");
    context.after(() => {
      target.close();
      target.closeAllConnections();
    });
    const data = makeFolder();
    const temporary = makeFolder();
    const up = run(["up", "--json", "--only", "gate", "--data", data, ...anyPort], {
      TMPDIR: temporary,
    });
    const started = await up.waitFor(findStarted);
    const { url, pid } = find(started, "gate");
    const others = started.services.filter(({ name }) => name !== "gate");
    const credentials = readFileSync(join(data, "credentials.env"), "utf8");
    const token = /^PLATFORM_GATE_AUTH_TOKEN=(.+)$/m.exec(credentials)?.[1];
    const route = {
      prefix: "/by-api",
      target: `http://127.0.0.1:${(target.address() as AddressInfo).port}`,
      auth: { type: "none" },
    };
    const added = await fetch(`${url}/api/v1/routes`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(route),
    });
    assert.equal(added.status, 200, await added.text());

    const load = startLoad(`${url}/by-api`);
    context.after(() => void load.end());
    const pids = [pid];
    for (const [index, waitMs] of [500, 1000].entries()) {
      await waitFor(() => load.counts.answered > index * 100 + 50, "answers");
      process.kill(pids.at(-1)!, "SIGKILL");
      const restarts = await up.waitFor((text) => {
        const found = listRestarts(text);
        return found.length > index ? found : undefined;
      });
      const { part, outcome, restart_in_ms } = restarts[index] ?? {};
      assert.deepEqual([part, outcome, restart_in_ms], ["gateway", "SIGKILL", waitMs]);
      const before = load.counts.answered;
      await waitFor(() => load.counts.answered > before + 50, "answers of the next gateway");
      const [next, ...more] = listChildren(up.child.pid!, GATEWAY);
      assert.deepEqual(more, []);
      assert.ok(next !== undefined && !pids.includes(next));
      pids.push(next);
    }
    await load.end();
    assert.deepEqual([...load.statuses], [200], "a request met a gateway without its routes");
    assert.ok(load.counts.broken > 0);
    assert.equal((await fetch(`${url}/hello`)).status, 200);
    assert.ok(others.every((service) => isAlive(service.pid)));
    const listControlFolders = (): string[] =>
      readdirSync(temporary).filter((name) => name.startsWith("pgate-"));
    await waitFor(() => listControlFolders().length === 1, "one control folder");

    up.child.kill("SIGTERM");
    assert.equal(await up.exit, 0, up.output().out);
    assert.deepEqual([...pids, ...others.map((service) => service.pid)].filter(isAlive), []);
    assert.deepEqual(listControlFolders(), []);
  },
);
