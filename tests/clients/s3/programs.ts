// S3 client programs.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { vaultRoot } from "@platform/testing/staged-vault";
import {
  assertSameTree,
  readVersionOf,
  runProgram,
  type RealS3Client,
  type S3Scene,
} from "./client.ts";

const PYTHON = "/usr/bin/python3";
const RUBY = "/usr/bin/ruby";
const AWS = "/usr/bin/aws";
const BOTO3_SCRIPT = fileURLToPath(new URL("boto3-exercise.py", import.meta.url));
const RUBY_SCRIPT = fileURLToPath(new URL("ruby-exercise.rb", import.meta.url));
const FUSE = "/dev/fuse";

const boto3: RealS3Client = {
  name: "boto3",
  package: { registry: "Debian", name: "python3-boto3" },
  readVersion: () => readVersionOf(PYTHON, [BOTO3_SCRIPT, "version"], /^(\S+)/),
  shows:
    "objects with metadata and tags, ranges, multipart in both directions, copy, presigned URLs, POST forms, SSE-C, SSE-KMS, SelectObjectContent, versions, lifecycle, CORS, batch deletion",
  exercise: async (scene) => {
    await runProgram(scene, PYTHON, [BOTO3_SCRIPT, scene.vault.url, scene.bucket]);
  },
};

const ruby: RealS3Client = {
  name: "AWS SDK for Ruby",
  package: { registry: "Debian", name: "ruby-aws-sdk-s3" },
  readVersion: () => readVersionOf(RUBY, [RUBY_SCRIPT, "version"], /^(\S+)/m),
  shows:
    "checksums, multipart upload of files and streams, parallel ranged downloads, multipart copy, presigned URLs, POST forms, versions, batch deletion",
  exercise: async (scene) => {
    await runProgram(scene, RUBY, [RUBY_SCRIPT, scene.vault.url, scene.bucket, scene.tree]);
  },
};

const awsCli: RealS3Client = {
  name: "AWS CLI",
  package: { registry: "Debian", name: "awscli" },
  readVersion: () => readVersionOf(AWS, ["--version"], /aws-cli\/(\S+)/),
  shows:
    "`s3 sync` in both directions, multipart, `ls`, `mv`, `sync --delete`, SSE-KMS, `select-object-content`, `rb --force`",
  async exercise(scene) {
    const aws = (...args: string[]) =>
      runProgram(scene, AWS, ["--endpoint-url", scene.vault.url, "s3", ...args]);
    const there = `s3://${scene.bucket}/tree`;
    const quiet = "--only-show-errors";
    const copy = join(scene.folder, "copy");
    await aws("sync", quiet, scene.tree, there);
    await aws("sync", quiet, there, copy);
    await assertSameTree(scene, copy);
    assert.match(await aws("ls", "--recursive", there), /tree\/grüße\/日本語 🎈\.txt/);
    await aws("mv", quiet, `${there}/large.bin`, `${there}/moved.bin`);
    const synced = await aws("sync", "--no-progress", "--delete", scene.tree, there);
    const actions = synced.trim().split("\n");
    assert.equal(actions.length, 2, "only what was moved is carried anew");
    assert.match(synced, /^delete: .*moved\.bin$/m);
    assert.match(synced, /^upload: .*large\.bin$/m);
    await encrypt(scene);
    await selectRecords(scene);
    assert.match(await aws("rb", "--force", `s3://${scene.bucket}`), /^remove_bucket: /m);
  },
};

async function encrypt(scene: S3Scene): Promise<void> {
  const aws = (...args: string[]) =>
    runProgram(scene, AWS, ["--endpoint-url", scene.vault.url, ...args]);
  const { bucket, tree } = scene;
  const rule = { ApplyServerSideEncryptionByDefault: { SSEAlgorithm: "aws:kms" } };
  const document = JSON.stringify({ Rules: [rule] });
  const name = "--server-side-encryption-configuration";
  await aws("s3api", "put-bucket-encryption", "--bucket", bucket, name, document);
  const large = join(tree, "large.bin");
  const named = ["--sse", "aws:kms", "--sse-kms-key-id", "alias/aws/s3"];
  await aws("s3", "cp", "--only-show-errors", ...named, large, `s3://${bucket}/named`);
  await aws("s3", "cp", "--only-show-errors", `s3://${bucket}/named`, `s3://${bucket}/copied`);
  const head = await aws("s3api", "head-object", "--bucket", bucket, "--key", "copied");
  assert.match(head, /"ServerSideEncryption": "aws:kms"/);
  const back = join(scene.folder, "copied");
  await aws("s3", "cp", "--only-show-errors", `s3://${bucket}/copied`, back);
  assert.ok(readFileSync(back).equals(readFileSync(large)));
}

async function selectRecords(scene: S3Scene): Promise<void> {
  const table = join(scene.folder, "table.csv");
  const answer = join(scene.folder, "answer.json");
  writeFileSync(table, "id;name\n1;Ann\n2;Bob\n");
  const { url } = scene.vault;
  await runProgram(scene, AWS, [
    "--endpoint-url",
    url,
    "s3",
    "cp",
    table,
    `s3://${scene.bucket}/t`,
  ]);
  const options = {
    bucket: scene.bucket,
    key: "t",
    "expression-type": "SQL",
    expression: "SELECT s.name FROM S3Object s WHERE s.id = 2",
    "input-serialization": '{"CSV":{"FileHeaderInfo":"USE","FieldDelimiter":";"}}',
    "output-serialization": '{"JSON":{}}',
  };
  const values = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const command = ["--endpoint-url", url, "s3api", "select-object-content"];
  await runProgram(scene, AWS, [...command, ...values, answer]);
  assert.equal(readFileSync(answer, "utf8"), '{"name":"Bob"}\n');
}

const s3cmd: RealS3Client = {
  name: "s3cmd",
  package: { registry: "Debian", name: "s3cmd" },
  readVersion: () => readVersionOf("/usr/bin/s3cmd", ["--version"], /version (\S+)/),
  shows: "`sync` in both directions, multipart, a public ACL, `info`, `del --recursive`, `rb`",
  async exercise(scene) {
    const host = `127.0.0.1:${scene.vault.port}`;
    const config = join(scene.folder, "s3cmd.ini");
    writeFileSync(
      config,
      [
        "[default]",
        `access_key = ${vaultRoot.accessKey}`,
        `secret_key = ${vaultRoot.secretKey}`,
        `host_base = ${host}`,
        `host_bucket = ${host}`,
        "use_https = False",
        "multipart_chunk_size_mb = 5",
        "",
      ].join("\n"),
    );
    const s3 = (...args: string[]) =>
      runProgram(scene, "/usr/bin/s3cmd", ["-c", config, "--no-progress", ...args]);
    const there = `s3://${scene.bucket}/tree/`;
    const copy = join(scene.folder, "copy");
    mkdirSync(copy);
    await s3("sync", `${scene.tree}/`, there);
    await s3("sync", there, `${copy}/`);
    await assertSameTree(scene, copy);
    const url = `${scene.vault.url}/${scene.bucket}/tree/plain.txt`;
    assert.equal((await fetch(url)).status, 403);
    await s3("setacl", "--acl-public", `${there}plain.txt`);
    assert.equal(await (await fetch(url)).text(), "plain");
    assert.match(await s3("info", `${there}plain.txt`), /ACL:\s+\*anon\*: READ/);
    await s3("del", "--recursive", "--force", `s3://${scene.bucket}`);
    await s3("rb", `s3://${scene.bucket}`);
  },
};

const rclone: RealS3Client = {
  name: "rclone",
  package: { registry: "Debian", name: "rclone" },
  readVersion: () => readVersionOf("/usr/bin/rclone", ["version"], /rclone v(\S+)/),
  shows: "`sync` with multipart, `check --download`, a server-side copy, `sync` back, `purge`",
  async exercise(scene) {
    const config = join(scene.folder, "rclone.conf");
    writeFileSync(
      config,
      [
        "[store]",
        "type = s3",
        "provider = Other",
        "env_auth = true",
        `endpoint = ${scene.vault.url}`,
        "chunk_size = 5Mi",
        "upload_cutoff = 5Mi",
        "",
      ].join("\n"),
    );
    const rc = (...args: string[]) =>
      runProgram(scene, "/usr/bin/rclone", ["--config", config, ...args]);
    const there = `store:${scene.bucket}/tree`;
    const copy = join(scene.folder, "copy");
    await rc("sync", scene.tree, there);
    await rc("check", "--download", scene.tree, there);
    await rc("copy", there, `store:${scene.bucket}/other`);
    await rc("sync", `store:${scene.bucket}/other`, copy);
    await assertSameTree(scene, copy);
    await rc("purge", there);
    assert.equal((await rc("lsf", `store:${scene.bucket}`)).trim(), "other/");
  },
};

const restic: RealS3Client = {
  name: "restic",
  package: { registry: "Debian", name: "restic" },
  readVersion: () => readVersionOf("/usr/bin/restic", ["version"], /restic (\S+)/),
  shows: "a repository: `backup`, `check --read-data`, `restore`, `forget --prune`",
  async exercise(scene) {
    const env = {
      RESTIC_REPOSITORY: `s3:${scene.vault.url}/${scene.bucket}/repository`,
      RESTIC_PASSWORD: "a password",
      RESTIC_CACHE_DIR: join(scene.folder, "cache"),
    };
    const call = (...args: string[]) =>
      runProgram(scene, "/usr/bin/restic", ["--quiet", ...args], { env });
    await call("init");
    await call("backup", scene.tree);
    await call("check", "--read-data");
    await call("restore", "latest", "--target", join(scene.folder, "back"));
    await assertSameTree(scene, join(scene.folder, "back", scene.tree));
    await call("backup", join(scene.tree, "many"));
    await call("forget", "--keep-last", "1", "--group-by", "", "--prune");
    await call("check");
  },
};

const s3fs: RealS3Client = {
  name: "s3fs",
  package: { registry: "Debian", name: "s3fs" },
  readVersion: () => readVersionOf("/usr/bin/s3fs", ["--version"], /System V(\S+)/),
  findObstacle: () =>
    existsSync(FUSE) && process.getuid?.() === 0
      ? undefined
      : `${FUSE} or root's rights are missing`,
  shows: "a mount: copy in and out, rename, append, delete",
  async exercise(scene) {
    const mount = join(scene.folder, "mount");
    const password = join(scene.folder, "password");
    mkdirSync(mount);
    writeFileSync(password, `${vaultRoot.accessKey}:${vaultRoot.secretKey}\n`, { mode: 0o600 });
    const options = [
      `passwd_file=${password}`,
      `url=${scene.vault.url}`,
      "use_path_request_style",
      "retries=1",
    ];
    await runProgram(scene, "/usr/bin/s3fs", [scene.bucket, mount, "-o", options.join(",")]);
    try {
      await runProgram(scene, "/bin/cp", ["-r", scene.tree, join(mount, "tree")]);
      await assertSameTree(scene, join(mount, "tree"));
      await runProgram(scene, "/bin/mv", [join(mount, "tree/plain.txt"), join(mount, "moved")]);
      writeFileSync(join(mount, "moved"), " and more", { flag: "a" });
      assert.equal(readFileSync(join(mount, "moved"), "utf8"), "plain and more");
      rmSync(join(mount, "tree"), { recursive: true });
      assert.deepEqual(readdirSync(mount), ["moved"]);
    } finally {
      await runProgram(scene, "/bin/umount", ["--lazy", mount]);
    }
  },
};

/** All programs. */
export const programs: readonly RealS3Client[] = [boto3, ruby, awsCli, s3cmd, rclone, restic, s3fs];
