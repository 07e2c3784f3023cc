// Buckets of storage itself, and restored buckets, as boto3 and the command line of AWS see them.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { vaultRoot } from "@platform/testing/staged-vault";
import { identity, putModule } from "../guest/guests.ts";
import { VERSIONED } from "../job/rig.ts";
import { addReader } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { back, restore } from "./rig.ts";

const run = promisify(execFile);
const PYTHON = "/usr/bin/python3";
const AWS = "/usr/bin/aws";
const SCRIPT = fileURLToPath(new URL("boto3-exercise.py", import.meta.url));
const isThere = spawnSync(PYTHON, [SCRIPT, "version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = !isThere && !isRequired && "python3-boto3 is not installed";

let root: string;
let serving: Serving;
before(async () => {
  root = mkdtempSync(join(tmpdir(), "vault-boto3-"));
  mkdirSync(join(root, "backups"));
  serving = await serve({ env: { PLATFORM_VAULT_BACKUP_DIR: join(root, "backups") } });
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

interface Caller {
  readonly accessKey: string;
  readonly secretKey: string;
}

function describeCaller({ accessKey, secretKey }: Caller): Record<string, string> {
  return {
    PATH: "/usr/bin:/bin",
    HOME: root,
    AWS_ACCESS_KEY_ID: accessKey,
    AWS_SECRET_ACCESS_KEY: secretKey,
    AWS_DEFAULT_REGION: "us-east-1",
    AWS_EC2_METADATA_DISABLED: "true",
  };
}

async function exercise(caller: Caller, ...words: string[]): Promise<string> {
  const [command = "", ...rest] = words;
  const args = [SCRIPT, command, serving.vault.url, ...rest];
  const { stdout } = await run(PYTHON, args, { env: describeCaller(caller) });
  return stdout;
}

async function runAws(caller: Caller, ...words: string[]): Promise<string> {
  const args = ["s3", ...words, "--endpoint-url", serving.vault.url];
  const { stdout } = await run(AWS, args, { env: describeCaller(caller) });
  return stdout;
}

test("boto3: root reads modules, and nobody writes them", { skip }, async () => {
  await putModule(serving, "copy", identity);
  await serving.s3.must("PUT", "/ordinary");
  const user = await addReader(serving, "*", ["s3:*"]);
  await exercise(vaultRoot, "reserved", "system-modules", "copy");
  await exercise(user, "outside", "system-modules", "copy");
  assert.equal((await serving.s3.must("GET", "/system-modules?versions")).status, 200);
});

const skipAws = !existsSync(AWS) && !isRequired && "awscli is not installed";

test("aws-cli: root reads modules, and nobody writes them", { skip: skipAws }, async () => {
  await putModule(serving, "copy", identity);
  const user = await addReader(serving, "*", ["s3:*"]);
  const file = join(root, "copy.wasm");
  assert.match(await runAws(vaultRoot, "ls", "s3://system-modules/"), / copy\n/);
  await runAws(vaultRoot, "cp", "s3://system-modules/copy", file);
  assert.ok(readFileSync(file).equals(identity));
  const denied = /AccessDenied|Forbidden|403/;
  await Promise.all([
    assert.rejects(runAws(vaultRoot, "cp", file, "s3://system-modules/other"), denied),
    assert.rejects(runAws(vaultRoot, "rm", "s3://system-modules/copy"), denied),
    assert.rejects(runAws(user, "ls", "s3://system-modules/"), denied),
    assert.rejects(runAws(user, "cp", "s3://system-modules/copy", "-"), denied),
  ]);
  assert.match(await runAws(vaultRoot, "ls", "s3://system-modules/"), / copy\n/);
});

test("boto3: a restored bucket has the same versions", { skip }, async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/versions");
  await s3.must("PUT", "/versions?versioning", { body: VERSIONED });
  for (let number = 0; number < 120; number += 1) {
    const headers = { "x-amz-meta-number": `${number}`, "x-amz-tagging": `n=${number % 7}` };
    await s3.must("PUT", `/versions/k${number % 40}`, { body: "x".repeat(number * 300), headers });
    if (number % 9 === 0) await s3.must("DELETE", `/versions/k${number % 40}`);
  }
  await back(serving);
  const job = await restore(serving, { buckets: ["versions"], as: { versions: "versions-again" } });
  assert.equal(job.state, "completed", job.reason ?? "");
  const count = await exercise(vaultRoot, "same", "versions", "versions-again");
  assert.equal(Number(count), 120 + 14);
});
