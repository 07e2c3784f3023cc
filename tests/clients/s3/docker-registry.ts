// A container registry with its images in the store: large appends in parts, copies, and downloads by presigned URL.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { vaultRoot } from "@platform/testing/staged-vault";
import { readVersionOf, runProgram, type RealS3Client, type S3Scene } from "./client.ts";

const PROGRAM = "/usr/bin/docker-registry";
const START_TIMEOUT_MS = 30_000;
const MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";

/** Docker's registry. */
export const dockerRegistry: RealS3Client = {
  name: "Docker registry",
  package: { registry: "Debian", name: "docker-registry" },
  readVersion: () => readVersionOf(PROGRAM, ["--version"], /(\S+)$/m),
  shows:
    "an image pushed in chunks, pulled through a presigned URL, listed, deleted and garbage-collected",
  async exercise(scene) {
    const config = join(scene.folder, "registry.yml");
    writeFileSync(config, JSON.stringify(describeRegistry(scene)));
    const large = readFileSync(join(scene.tree, "large.bin"));
    const layerUrl = await serve(scene, config, (url) => pushAndPull(url, large));
    assert.equal(await readStatus(layerUrl), 200);
    const collected = await runProgram(scene, PROGRAM, ["garbage-collect", config]);
    assert.match(collected, /3 blobs and 0 manifests eligible for deletion/);
    assert.equal(await readStatus(layerUrl), 404);
  },
};

async function readStatus(url: string): Promise<number> {
  const answer = await fetch(url);
  await answer.arrayBuffer();
  return answer.status;
}

// YAML is a superset of JSON.
function describeRegistry({ vault, bucket }: S3Scene): object {
  const s3 = {
    accesskey: vaultRoot.accessKey,
    secretkey: vaultRoot.secretKey,
    region: "us-east-1",
    regionendpoint: vault.url,
    bucket,
    secure: false,
    chunksize: 5 * 1024 * 1024,
  };
  return {
    version: 0.1,
    storage: { s3, delete: { enabled: true } },
    http: { addr: "127.0.0.1:0", secret: "a secret" },
  };
}

/** Pushes an image of one layer, pulls and deletes it; returns the URL from which the layer was downloaded. */
async function pushAndPull(url: string, layer: Buffer): Promise<string> {
  const image = `${url}/v2/house/image`;
  const middle = Math.floor(layer.length / 2) + 1;
  const config = Buffer.from("{}");
  await pushBlob(image, config, [config]);
  await pushBlob(image, layer, [layer.subarray(0, middle), layer.subarray(middle)]);
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: describeBlob(config, "application/vnd.docker.container.image.v1+json"),
    layers: [describeBlob(layer, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
  });
  const headers = { "content-type": MANIFEST };
  const put = await fetch(`${image}/manifests/latest`, { method: "PUT", headers, body: manifest });
  assert.equal(put.status, 201);
  const tags = (await (await fetch(`${image}/tags/list`)).json()) as { tags: string[] };
  assert.deepEqual(tags.tags, ["latest"]);
  const pulled = await fetch(`${image}/blobs/${toDigest(layer)}`);
  assert.ok(Buffer.from(await pulled.arrayBuffer()).equals(layer));
  assert.ok(!pulled.url.startsWith(url), "the layer comes from the store");
  const target = `${image}/manifests/${put.headers.get("docker-content-digest")}`;
  assert.equal((await fetch(target, { method: "DELETE" })).status, 202);
  return pulled.url;
}

async function pushBlob(image: string, whole: Buffer, pieces: readonly Buffer[]): Promise<void> {
  const begun = await fetch(`${image}/blobs/uploads/`, { method: "POST" });
  let location = begun.headers.get("location")!;
  const headers = { "content-type": "application/octet-stream" };
  for (const piece of pieces) {
    const body = new Uint8Array(piece);
    const sent = await fetch(location, { method: "PATCH", headers, body });
    assert.equal(sent.status, 202, await sent.text());
    location = sent.headers.get("location")!;
  }
  const done = await fetch(`${location}&digest=${toDigest(whole)}`, { method: "PUT" });
  assert.equal(done.status, 201, await done.text());
}

function describeBlob(blob: Buffer, mediaType: string): object {
  return { mediaType, size: blob.length, digest: toDigest(blob) };
}

function toDigest(blob: Buffer): string {
  return `sha256:${createHash("sha256").update(blob).digest("hex")}`;
}

/** Runs the registry during `use`. */
async function serve<T>(
  { env, folder }: S3Scene,
  config: string,
  use: (url: string) => Promise<T>,
): Promise<T> {
  const child = spawn(PROGRAM, ["serve", config], {
    env,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  try {
    return await use(`http://127.0.0.1:${await readPort(child)}`);
  } finally {
    if (child.exitCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  }
}

async function readPort(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let log = "";
  const fail = (): void => reject(new Error(`the registry does not start: ${log}`));
  const timer = setTimeout(fail, START_TIMEOUT_MS);
  child.once("error", reject);
  child.once("exit", fail);
  // Read completely, so that the registry does not block.
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-16_384);
    const port = /listening on 127\.0\.0\.1:(\d+)/.exec(log)?.[1];
    if (port !== undefined) resolve(port);
  });
  return promise.finally(() => clearTimeout(timer));
}
