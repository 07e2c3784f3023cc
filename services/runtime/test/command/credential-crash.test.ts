// A platform that is killed while a credential is replaced: the next start accepts what was accepted.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { find, findStarted, makeFolder, parseEnv, run } from "@platform/testing/platform-process";

const NAME = "PLATFORM_NOTIFY_TOKEN";

const data = join(makeFolder(), "data");
const flags = ["--only", "mail", "--json", "--data", data];

before(async () => {
  for (const name of ["runtime", "mail"]) {
    flags.push(`--${name}-addr`, `127.0.0.1:${await findFreePort()}`);
  }
});

const readAll = () => parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
const read = (): string => readAll()[NAME] ?? "";

async function start() {
  const up = run(["up", ...flags]);
  const started = await up.waitFor(findStarted);
  const mail = find(started, "notify");
  const ask = async (value: string): Promise<number> => {
    const headers = { authorization: `Bearer ${value}` };
    return (await fetch(`${mail.url}/api/v1/inbox`, { headers })).status;
  };
  return { ...up, pid: mail.pid, apiUrl: started.api_url, ask };
}

const rotate = (overlapS: number) =>
  run(["credentials", "rotate", NAME, "--overlap-s", String(overlapS), "--data", data]);

test("killed before all services accept the next value: it is forgotten; after the commit: both are accepted", async () => {
  const first = await start();
  const value = read();
  // It receives the next value, and does not confirm it.
  process.kill(first.pid, "SIGSTOP");
  const refused = fetch(`${first.apiUrl}/api/v1/credentials/${NAME}/rotate`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${readAll()["PLATFORM_RUNTIME_TOKEN"]}`,
      "content-type": "application/json",
    },
    body: "{}",
  });
  await Promise.race([refused, sleep(1_500)]);
  first.child.kill("SIGKILL");
  process.kill(first.pid, "SIGCONT");
  await assert.rejects(refused, /fetch failed/);
  assert.equal(read(), value, "the file has the value that everybody accepts");

  const second = await start();
  assert.equal(await second.ask(value), 200);
  // Killed as soon as the file has the new value, before anybody was told.
  const killed = rotate(3_600);
  while (read() === value && killed.child.exitCode === null) await sleep(1);
  second.child.kill("SIGKILL");
  await killed.exit;

  const third = await start();
  const next = read();
  assert.notEqual(next, value);
  const end = Date.parse(
    new RegExp(`former ${NAME}=\\S+ until (\\S+)`).exec(
      readFileSync(join(data, "credentials.env"), "utf8"),
    )?.[1] ?? "",
  );
  assert.ok(end > Date.now() + 3_000_000, "the former value has the end of the command");
  assert.deepEqual([await third.ask(value), await third.ask(next)], [200, 200]);
  const ended = rotate(0);
  assert.equal(await ended.exit, 0, ended.output().err);
  const last = read();
  const statuses = await Promise.all([value, next, last].map(third.ask));
  assert.deepEqual(statuses, [401, 401, 200]);
  third.child.kill("SIGTERM");
  assert.equal(await third.exit, 0);

  const stopped = rotate(3_600);
  assert.equal(await stopped.exit, 0, stopped.output().err);
  assert.match(stopped.output().out, /the services have it when the platform starts/);
  const fourth = await start();
  assert.notEqual(read(), last);
  assert.deepEqual([await fourth.ask(last), await fourth.ask(read())], [200, 200]);
  fourth.child.kill("SIGTERM");
  await fourth.exit;
});
