// Real S3 clients against the object store. With PLATFORM_CLIENTS_TABLE=write the run also rewrites
// docs/guide/s3-clients.md.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { StagedVault, vaultRoot } from "../../../services/vault/test/serving/staged-vault.ts";
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

const BY_HAND = [
  "## Tried by hand",
  "",
  "These were put to the same work once, without a test that stays:",
  "",
  "- npm: aws-sdk 2.1693.0 (signature versions 2 and 4), @aws-sdk/s3-request-presigner and s3-presigned-post, aws4fetch 1.0.20, s3mini 1.0.2,",
  "  @bradenmacdonald/s3-lite-client 1.0.0, s3-sync-client 4.3.1, @tus/s3-store 2.0.7, multer-s3 3.0.1, flydrive 2.1.0",
  "- Go: minio-go 7.0.46 (signature versions 2 and 4), aws-sdk-go 1.44.133, aws-sdk-go-v2 1.17.1, aptly 1.5.0",
  "- Python: boto 2.49.0, Apache Libcloud 3.4.1, smart_open 5.2.1, s4cmd 2.1.0, duplicity 0.8.22, barman-cloud 3.4.0",
  "- Ruby: fog-aws 3.15.0 (signature versions 2 and 4); Java: JetS3t 0.8.1; Perl: Net::Amazon::S3 0.991, Amazon::S3 0.60",
  "- Rust: Apache OpenDAL 0.47.7, LanceDB 0.39.0 (tables written by several at once, on conditional puts)",
  "- C and C++: pgBackRest 2.45 behind TLS (backup, WAL archive, restore), MariaDB 10.11's S3 engine, GDAL 3.6.2 (`/vsis3/`), s3backer 1.5.4,",
  "  davix 0.8.4, curl 7.88 with `--aws-sigv4`",
  "",
  "Suites that clients bring along for trying a store:",
  "",
  "| suite | result |",
  "|---|---|",
  "| minio-go 7.0.46, `functional_tests.go`, full mode | 82 passed, 2 are about what MinIO alone has, 1 expects that there are no ACLs |",
  "| minio-go 7.0.46, core tests | 8 passed |",
  "| rclone 1.60.1, integration test of its S3 backend | 142 passed, 9 skipped by itself |",
  "| Docker's distribution 2.8.2, suite of storage drivers | 38 passed |",
  "| git-annex 10.20230126, `testremote` | 125 passed; part of the test above |",
  "",
  "What does not work, here as in S3: `setBucketTagging` of the MinIO client for JavaScript (it wants 200, S3 answers 204), metadata beyond",
  "ASCII from clients on Node (sent as latin1, signed as UTF-8), curl before 8 without `x-amz-content-sha256`. A plus in a path is a plus, as",
  "in other stores; libs3 2.0 writes it for a space.",
];

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
      "# S3 clients that the object store was tried with",
      "",
      "Each row is a test in `tests/clients/s3` against a store with the default configuration, buckets addressed by path.",
      "`PLATFORM_CLIENTS_TABLE=write npm test -- tests/clients/s3` writes this page anew.",
      "",
      "| client | version | from | what was shown | result |",
      "|---|---|---|---|---|",
      ...rows,
      "",
      ...BY_HAND,
      "",
    ].join("\n"),
  );
}
