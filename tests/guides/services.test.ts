// The pages "Messaging" and "Object storage": their commands run as they are, but for ports and folder.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  run,
} from "../../services/runtime/test/fixture/platform-process.ts";
import { findProgram } from "../stage/program.ts";
import { readBlocks } from "./page.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const missing = ["bash", "curl", "kcat", "aws"].find((name) => findProgram(name) === undefined);
const skip =
  missing === undefined || process.env["PLATFORM_TEST_PEERS"] === "required"
    ? false
    : `${missing} is not installed`;

const folder = makeFolder();
let up: ReturnType<typeof run>;
let ports: [fixed: string, actual: string][];

before(async () => {
  if (skip !== false) return;
  up = run(["up", "--json", "--data", join(folder, "data"), ...anyPort]);
  const started = await up.waitFor(findStarted);
  const portOf = (service: string, listener: string): string =>
    String(find(started, service).listeners.find(({ name }) => name === listener)!.port);
  ports = [
    ["8082", portOf("pulse", "http")],
    ["9092", portOf("pulse", "kafka")],
    ["9000", portOf("vault", "http")],
    ["9001", portOf("vault", "admin")],
  ];
});
after(async () => {
  if (skip !== false) return;
  up.child.kill("SIGTERM");
  await up.exit;
});

/** Types the commands of a page; subscriptions end after a few seconds. */
async function type(page: string): Promise<string> {
  const lines = readBlocks(page)
    .filter(({ language, text }) => language === "sh" && !text.includes("…"))
    .map(({ text }) => text);
  const program = join(REPOSITORY, "bin/platform.js");
  const script = ports
    .reduce(
      (text, [fixed, actual]) => text.replaceAll(`localhost:${fixed}`, `localhost:${actual}`),
      lines.join("\n"),
    )
    .replaceAll("npx platform", `"${process.execPath}" "${program}"`)
    .replaceAll(/^curl -N .*$/gm, "timeout 5 $& || true");
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
    cwd: folder,
    env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` },
  });
  return stdout;
}

test("messaging: publishing, subscribing, topics, groups and Kafka", { skip }, async () => {
  const out = await type("messaging.md");
  assert.ok(!out.includes("urn:platform:error"), out);
  assert.match(out, /^data: \{"topic":"orders",.*"payload":"first"/m);
  assert.match(out, /"count":2,"results":.*"scheduled_for"/);
  assert.match(out, /"name":"invoices".*"partitions":4/);
  assert.match(out, /"group":"billing","topic":"orders"/);
  assert.match(out, /"replayed":\d/);
  assert.match(out, /^hello$/m);
});

test("object storage: objects, links, versions, lifecycle and quota", { skip }, async () => {
  const out = await type("storage.md");
  assert.ok(!out.includes("urn:platform:error"), out);
  assert.match(out, / 6 hello\.txt$/m);
  assert.match(out, /^hello$/m);
  assert.match(out, /2026\/hello\.txt\s+\S+\s+True/);
  assert.match(out, /"max_bytes": ?1073741824/);
});
