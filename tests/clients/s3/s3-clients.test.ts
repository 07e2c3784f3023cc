// Real S3 clients against the object store. With PLATFORM_CLIENTS_TABLE=write the run also rewrites
// docs/guide/s3-clients.md.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { bun } from "./bun.ts";
import type { RealS3Client, S3Scene } from "./client.ts";
import { dockerRegistry } from "./docker-registry.ts";
import { gitAnnex } from "./git-annex.ts";
import { minio } from "./minio.ts";
import { programs } from "./programs.ts";
import { sdk } from "./sdk.ts";
import { writeTree } from "./tree.ts";

const PAGE = new URL("../../../docs/guide/s3-clients.md", import.meta.url);
const CLIENTS: readonly RealS3Client[] = [sdk, minio, bun, ...programs, gitAnnex, dockerRegistry];
const passed = new Set<RealS3Client>();

describe("real S3 clients", () => {
  const folder = mkdtempSync(join(tmpdir(), "platform-s3-clients-"));
  const tree = join(folder, "tree");
  let vault: StagedVault;

  before(async () => {
    writeTree(tree);
    const buckets = CLIENTS.map((_client, number) => nameBucket(number)).join(",");
    const env = { PLATFORM_VAULT_DEFAULT_BUCKETS: buckets };
    vault = await StagedVault.start({ folder: join(folder, "vault"), env });
  });
  after(async () => {
    await vault[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const client of CLIENTS) {
    test(`${client.name}: ${client.shows}`, async (t) => {
      const version = client.readVersion();
      const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
      const missing = `${formatPackage(client)} is not installed`;
      if (version === undefined && isRequired) assert.fail(missing);
      const obstacle = version === undefined ? missing : client.findObstacle?.();
      if (obstacle !== undefined) {
        t.skip(obstacle);
        return;
      }
      t.diagnostic(`${client.name} ${version}`);
      const scene = setScene(folder, tree, vault, CLIENTS.indexOf(client));
      await client.exercise(scene);
      passed.add(client);
    });
  }
});

after(() => {
  if (process.env["PLATFORM_CLIENTS_TABLE"] === "write") writePage();
});

function nameBucket(number: number): string {
  return `client-${number}`;
}

function setScene(folder: string, tree: string, vault: StagedVault, number: number): S3Scene {
  const bucket = nameBucket(number);
  const scratch = join(folder, bucket);
  mkdirSync(scratch);
  const env = {
    PATH: "/usr/bin:/bin",
    HOME: scratch,
    LANG: "C.UTF-8",
    TMPDIR: scratch,
    AWS_ACCESS_KEY_ID: vaultRoot.accessKey,
    AWS_SECRET_ACCESS_KEY: vaultRoot.secretKey,
    AWS_DEFAULT_REGION: "us-east-1",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  return { vault, bucket, folder: scratch, tree, env };
}

function formatPackage(client: RealS3Client): string {
  return `${client.package.registry} ${client.package.name}`;
}

function writePage(): void {
  const rows = CLIENTS.map((client) => {
    const version = client.readVersion() ?? "not installed";
    const result = passed.has(client) ? "passed" : "not run or failed";
    return `| ${[client.name, version, formatPackage(client), client.shows, result].join(" | ")} |`;
  });
  writeFileSync(
    PAGE,
    [
      "# S3 clients tested with storage",
      "",
      "Each row is a test in `tests/clients/s3` against a store with the default configuration and path-style addressing.",
      "`PLATFORM_CLIENTS_TABLE=write npm test -- tests/clients/s3` rewrites this table.",
      "",
      "| client | version | package | tested | result |",
      "|---|---|---|---|---|",
      ...rows,
      "",
      keepSections(readFileSync(PAGE, "utf8")),
    ].join("\n"),
  );
}

/** The hand-written part of the page, below the table. */
function keepSections(page: string): string {
  const at = page.indexOf("\n## ");
  return at < 0 ? "" : page.slice(at + 1);
}
