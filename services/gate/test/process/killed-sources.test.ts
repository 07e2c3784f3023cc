// Sources that are killed within an answer: the gateway goes on with what it has, and takes the change when they are back.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { S3Client } from "@platform/s3";
import { createUrlSigner } from "@platform/s3/signature";
import { findFreePort } from "@platform/kernel/testing";
import { makeCertificate, opensslSkip } from "@platform/testing/certificates";
import { startSecretService, type TestSecretService } from "@platform/testing/secret-service";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, startGate, type GateProcess } from "../fixture/gate-process.ts";

const PROXY = fileURLToPath(new URL("../fixture/source-proxy.js", import.meta.url));
const hasGit = spawnSync("git", ["daemon", "-h"]).error === undefined;
const skip = hasGit ? opensslSkip : "git is not installed (Debian: git)";
const TOKEN = "hvs.token-of-the-gateway";

const steps: (() => unknown)[] = [];
const context = { after: (step: () => unknown): void => void steps.push(step) };
after(async () => {
  for (const step of steps.toReversed()) await step();
});

/** A source behind a process that can be killed. */
class MortalSource {
  readonly port: number;
  readonly #target: number;
  #proxy: ChildProcess | undefined;

  constructor(port: number, target: number) {
    this.port = port;
    this.#target = target;
  }

  /** With `hold`, answers stall after their first bytes. */
  async start(mode = ""): Promise<void> {
    const args = [PROXY, String(this.port), String(this.#target), mode];
    this.#proxy = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    await this.#expect("listening");
  }

  /** Waits until a request is within its answer, and kills the process. */
  async killWithinAnswer(ask: () => Promise<unknown>): Promise<void> {
    const held = this.#expect("holding");
    void ask().catch(() => undefined);
    await held;
    await this.kill();
  }

  async kill(): Promise<void> {
    const proxy = this.#proxy;
    if (proxy === undefined || proxy.exitCode !== null || proxy.signalCode !== null) return;
    const ended = once(proxy, "exit");
    proxy.kill("SIGKILL");
    await ended;
  }

  async #expect(word: string): Promise<void> {
    const { stdout } = this.#proxy!;
    for (let text = ""; !text.includes(word);) text += String((await once(stdout!, "data"))[0]);
  }
}

async function openMortal(target: number): Promise<MortalSource> {
  const source = new MortalSource(await findFreePort(), target);
  context.after(() => source.kill());
  await source.start();
  return source;
}

/** A document of services. */
class Documents {
  readonly server: Server = createServer((_request, response) => response.end(this.services));
  services = "";

  setServices(urls: readonly string[]): void {
    this.services = JSON.stringify({ services: { orders: urls } });
  }
}

const BUCKET = "configuration";

/** Creates the bucket; returns a writer of the configuration's routes. */
async function openBucket(vault: StagedVault): Promise<Stage["putRoutes"]> {
  const url = new URL(`/${BUCKET}`, vault.url);
  const { accessKey, secretKey: secret } = vaultRoot;
  const headers = createUrlSigner({ accessKey, secret, region: "us-east-1" })("PUT", url, "");
  assert.equal((await fetch(url, { method: "PUT", headers })).status, 200);
  const client = new S3Client({
    endpoint: new URL(vault.url),
    region: "us-east-1",
    bucket: BUCKET,
    credentials: () => vaultRoot,
  });
  context.after(() => client.close());
  const target = "service://orders";
  return (...prefixes) => {
    const document = { routes: prefixes.map((prefix) => ({ prefix, target })) };
    return client.put("config.json", Buffer.from(JSON.stringify(document)));
  };
}

interface Stage {
  gate: GateProcess & { ports: Record<string, number>; port: number };
  local: string;
  documents: Documents;
  putRoutes: (...prefixes: readonly string[]) => Promise<unknown>;
  secrets: TestSecretService;
  folder: string;
  mortal: Record<"bucket" | "discovery" | "secrets" | "git", MortalSource>;
}

let stage: Stage;

function git(folder: string, ...args: string[]): void {
  const user = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  execFileSync("git", [...user, "-C", folder, ...args], { stdio: ["ignore", "ignore", "pipe"] });
}

async function startGitDaemon(base: string): Promise<number> {
  const port = await findFreePort();
  const place = [`--base-path=${base}`, "--export-all", "--reuseaddr", "--listen=127.0.0.1"];
  // The program itself: git would start it as a process of its own.
  const programs = execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim();
  const args = [...place, `--port=${port}`, base];
  const child = spawn(join(programs, "git-daemon"), args, { stdio: "ignore" });
  context.after(() => child.kill("SIGKILL"));
  return port;
}

function writeCertificate(folder: string, name: string, secrets: TestSecretService): void {
  const pair = makeCertificate(folder, name, { names: "DNS:one.test" });
  secrets.write("gateway/certificates/one", {
    cert: readFileSync(pair.cert, "utf8"),
    key: readFileSync(pair.key, "utf8"),
  });
}

/** A repository with the gateway's configuration, and the clone of its author. */
function makeRepository({ root, bare, author }: Record<"root" | "bare" | "author", string>): void {
  mkdirSync(bare);
  git(bare, "init", "--bare", "--initial-branch", "main");
  git(root, "clone", bare, author);
  git(author, "checkout", "-B", "main");
  const config = {
    addr: "127.0.0.1:0",
    local_addr: "127.0.0.1:0",
    workers: 1,
    no_route_status: 502,
  };
  writeFileSync(join(author, "gate.json"), JSON.stringify(config));
  git(author, "add", "-A");
  git(author, "commit", "-m", "first");
  git(author, "push", "origin", "HEAD:main");
}

before(async () => {
  if (skip !== false) return;
  const root = makeFolder(context);
  const [bare, author, folder] = ["bare", "author", "gate"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  const documents = new Documents();
  const vault = await StagedVault.start({ folder: join(root, "vault") });
  context.after(() => vault[Symbol.asyncDispose]());
  const putRoutes = await openBucket(vault);
  await putRoutes("/first");
  documents.setServices([`http://127.0.0.1:9`]);
  documents.server.listen(0, "127.0.0.1");
  context.after(() => documents.server.close());
  context.after(() => documents.server.closeAllConnections());
  await once(documents.server, "listening");
  const { port } = documents.server.address() as { port: number };
  const secrets = await startSecretService(TOKEN);
  context.after(() => secrets.close());
  writeCertificate(root, "first", secrets);
  const daemon = await startGitDaemon(root);
  const mortal = {
    bucket: await openMortal(vault.port),
    discovery: await openMortal(port),
    secrets: await openMortal(Number(new URL(secrets.url).port)),
    git: await openMortal(daemon),
  };
  makeRepository({ root, bare, author });
  git(root, "clone", bare, folder);
  git(folder, "remote", "set-url", "origin", `git://127.0.0.1:${mortal.git.port}/bare`);
  const gate = await startGate(context, {
    runtime: runtimes[0]!,
    folder,
    env: {
      PLATFORM_CONFIG_STORE_BUCKET: BUCKET,
      PLATFORM_CONFIG_STORE_ENDPOINT: `http://127.0.0.1:${mortal.bucket.port}`,
      PLATFORM_GATE_CONFIG_STORE_POLL_S: "1",
      STORE_ACCESS_KEY_ID: vaultRoot.accessKey,
      STORE_SECRET_ACCESS_KEY: vaultRoot.secretKey,
      PLATFORM_DISCOVERY: `http://127.0.0.1:${mortal.discovery.port}/services`,
      PLATFORM_SECRET_URL: `http://127.0.0.1:${mortal.secrets.port}`,
      PLATFORM_SECRET_API_KEY: TOKEN,
      PLATFORM_GATE_SECRET_REFRESH_S: "1",
    },
  });
  stage = {
    gate,
    local: `http://127.0.0.1:${gate.ports["local"]}`,
    documents,
    putRoutes,
    secrets,
    folder: author,
    mortal,
  };
});

async function listRoutes(): Promise<string> {
  const answer = await fetch(`${stage.local}/api/v1/routes`);
  const routes = (await answer.json()) as {
    prefix: string;
    status: { targets: { url: string }[] };
  }[];
  return JSON.stringify(
    routes.map(({ prefix, status }) => [prefix, ...status.targets.map(({ url }) => url)]),
  );
}

async function readName(): Promise<string> {
  const place = { host: "127.0.0.1", port: stage.gate.port, servername: "one.test" };
  const socket = connect({ ...place, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

async function pull(): Promise<number> {
  const answer = await fetch(`${stage.local}/api/v1/gitops/webhook`, { method: "POST" });
  await answer.arrayBuffer();
  return answer.status;
}

/** Each source: its change, what shows it, and what causes a read of it; the others are polled. */
const SOURCES: Record<
  keyof Stage["mortal"],
  { change: () => unknown; read: () => Promise<string>; ask?: () => Promise<unknown> }
> = {
  bucket: { change: () => stage.putRoutes("/second"), read: listRoutes },
  discovery: {
    change: () => stage.documents.setServices(["http://127.0.0.1:10"]),
    read: listRoutes,
  },
  secrets: {
    change: () => writeCertificate(stage.folder, "second", stage.secrets),
    read: readName,
  },
  git: {
    change: () => {
      const path = join(stage.folder, "gate.json");
      const config = JSON.parse(readFileSync(path, "utf8")) as object;
      writeFileSync(path, JSON.stringify({ ...config, no_route_status: 404 }));
      git(stage.folder, "commit", "-am", "second");
      git(stage.folder, "push", "origin", "HEAD:main");
    },
    read: async () => String((await fetch(`${stage.local}/unknown`)).status),
    ask: pull,
  },
};

for (const [name, { change, read, ask }] of Object.entries(SOURCES)) {
  test(
    `kill -9 of ${name} within an answer leaves the former state, until it is back`,
    { skip },
    async () => {
      const source = stage.mortal[name as keyof Stage["mortal"]];
      const before = await read();
      await source.kill();
      await source.start("hold");
      await change();
      await source.killWithinAnswer(ask ?? (() => Promise.resolve()));
      assert.equal(await read(), before);
      if (ask !== undefined) assert.equal(await pull(), 502);
      await source.start();
      if (ask !== undefined) assert.equal(await pull(), 200);
      await waitFor(
        async () => (await read()) !== before,
        () => JSON.stringify(stage.gate.lines()),
      );
      assert.equal((await fetch(`${stage.local}/readyz`)).status, 200);
    },
  );
}
