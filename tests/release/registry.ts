// A registry of npm with a few packages, which records the names that it is asked for.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { spawnSync } from "node:child_process";

/** A running registry. */
export interface Registry {
  readonly url: string;
  /** Names of requested packages, in order, also unknown ones. */
  readonly asked: readonly string[];
  close(): void;
}

/** The parts of package.json that npm reads. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly [key: string]: unknown;
}

interface Published {
  readonly file: string;
  readonly manifest: Manifest;
}

/** Starts a registry of the tarballs in a folder. */
export async function startRegistry(folder: string): Promise<Registry> {
  const files = new Map<string, Published[]>();
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".tgz"))) {
    const file = join(folder, name);
    const read = ["-xzOf", file, "package/package.json"];
    const text = spawnSync("tar", read, { encoding: "utf8" }).stdout;
    const manifest = JSON.parse(text) as Manifest;
    files.set(manifest.name, [...(files.get(manifest.name) ?? []), { file, manifest }]);
  }
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1);
    const [, tarball, wanted] = /^(.+)\/-\/(.+)\.tgz$/.exec(path) ?? [];
    const name = tarball ?? path;
    // A report of advisories names all packages, and is no request for one.
    if (path.startsWith("-/")) {
      request.resume().once("end", () => response.writeHead(404).end("{}"));
      return;
    }
    asked.push(name);
    const found = files.get(name) ?? [];
    const file = found.find(({ manifest }) => manifest.version === wanted)?.file;
    if (file !== undefined) response.end(readFileSync(file));
    else if (found.length === 0 || tarball !== undefined) response.writeHead(404).end("{}");
    else response.end(JSON.stringify(describe(found, `http://${request.headers.host}`)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, asked, close: () => server.close() };
}

function describe(published: readonly Published[], origin: string) {
  const versions = published.map(({ file, manifest }) => {
    const { name, version } = manifest;
    const integrity = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
    const dist = { tarball: `${origin}/${name}/-/${version}.tgz`, integrity };
    return [version, { ...manifest, dist }] as const;
  });
  const [{ manifest }] = published as [Published];
  return {
    name: manifest.name,
    "dist-tags": { latest: manifest.version },
    versions: Object.fromEntries(versions),
  };
}
