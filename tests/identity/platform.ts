// The whole platform with two users: ada, whose role may publish, subscribe, store and read, and bob, who has no role.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request, type Agent, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { findFreePort } from "@platform/kernel/testing";
import { hashHex, signRequest } from "@platform/s3/signature";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  run,
  type Started,
} from "@platform/testing/platform-process";

/** The bucket that ada's role may use. */
export const BUCKET = "notes";
/** The role in identity and storage. */
export const ROLE = "writer";
/** The scopes of the role. */
export const SCOPES =
  "pulse:publish pulse:subscribe vault:read vault:write notify:send tunnel:open";
/** A circuit opens within this time, also on a busy machine. */
const CIRCUIT_MS = 60_000;
/** The administrator. */
export const ADMIN = { username: "root", password: "correct horse battery staple" };
const PERMISSIONS = SCOPES.split(" ");

/** A user of the platform. */
export interface User {
  username: string;
  password: string;
}
export const ADA: User = { username: "ada", password: "a fine long password" };
export const BOB: User = { username: "bob", password: "another fine password" };

/** Tokens of a sign-in. */
export interface SignedIn {
  access_token: string;
  refresh_token: string;
  session_token: string;
}

/** An answer as these tests read it. */
export interface Answer {
  status: number;
  text: string;
}

/** Options of a request. */
export interface Ask {
  method?: string;
  /** Value of the Host field; the connection goes to the gateway in any case. */
  host?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Connections to reuse. Default: a new one for each request. */
  agent?: Agent;
}

/** The running platform. */
export class Platform {
  readonly gate: URL;
  readonly auth: URL;
  readonly tunnel: URL;
  /** The web console. */
  readonly console: URL;
  /** Storage's API and page. */
  readonly vaultAdmin: URL;
  /** Messaging's API and page. */
  readonly pulse: URL;
  /** Mail's API and page. */
  readonly notify: URL;
  /** The API of `platform up`. */
  readonly runtime: URL;
  /** Ports by service and listener: `pulse kafka`. */
  readonly ports: ReadonlyMap<string, number>;
  /** The data folder. */
  readonly dataDir: string;
  /** The banner of `platform up`. */
  readonly started: Started;
  readonly #up: ReturnType<typeof run>;
  readonly pids: ReadonlyMap<string, number>;
  admin = "";

  private constructor(up: ReturnType<typeof run>, data: string, text: string) {
    const started = findStarted(text)!;
    const urlOf = (name: string) => new URL(find(started, name).url);
    this.#up = up;
    this.started = started;
    this.dataDir = data;
    this.gate = urlOf("gate");
    this.auth = urlOf("auth");
    this.tunnel = urlOf("tunnel");
    this.pulse = urlOf("pulse");
    this.notify = urlOf("notify");
    this.runtime = new URL(started.api_url);
    this.ports = new Map(
      started.services.flatMap(({ name, listeners }) =>
        listeners.map((listener) => [`${name} ${listener.name}`, listener.port] as const),
      ),
    );
    this.vaultAdmin = new URL(`http://127.0.0.1:${this.ports.get("vault admin")}`);
    this.console = new URL(`http://localhost:${this.ports.get("gate console")}`);
    this.pids = new Map(started.services.map(({ name, pid }) => [name, pid]));
  }

  /**
   * Starts all services and creates the users, the role and the bucket. `project`: a service file that runs with them;
   * `environment`: further variables.
   */
  static async start({
    project,
    environment = {},
  }: { project?: string; environment?: Readonly<Record<string, string>> } = {}): Promise<Platform> {
    const root = makeFolder();
    const data = join(root, "data");
    const flags = ["--json", "--data", data, ...anyPort];
    let folder = ".";
    if (project !== undefined) {
      assert.equal(await run(["init", "shop"], {}, "", root).exit, 0);
      folder = join(root, "shop");
      writeFileSync(join(folder, "main.service.ts"), project);
      flags.push("--project-addr", "127.0.0.1:0");
    }
    const env = {
      PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
      PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
      ...environment,
    };
    const up = run(["up", ...flags], env, "", folder);
    await up.waitFor(findStarted);
    const platform = new Platform(up, data, up.output().out);
    await platform.#prepare();
    return platform;
  }

  /** Stops it. */
  async stop(): Promise<void> {
    this.#up.child.kill("SIGTERM");
    await this.#up.exit;
  }

  /** The log of all services. */
  get log(): string {
    return this.#up.output().out;
  }

  /** A credential that the platform generated. */
  readCredential(name: string): string {
    const text = readFileSync(join(this.dataDir, "credentials.env"), "utf8");
    return new RegExp(`^${name}=(.*)$`, "m").exec(text)![1]!;
  }

  /** `identity.localhost:PORT` of the gateway. */
  hostOf(subdomain: string): string {
    return `${subdomain}.localhost:${this.gate.port}`;
  }

  /** Sends a request to the gateway. */
  async ask(path: string, options: Ask = {}): Promise<Answer> {
    const { method = "GET", host, headers = {}, body, agent } = options;
    const sent = request({
      // A connection of its own: a reused one may be closed by the server at the same moment.
      agent: agent ?? false,
      host: "127.0.0.1",
      port: this.gate.port,
      method,
      path,
      headers: {
        host: host ?? this.gate.host,
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
        ...headers,
      },
    });
    sent.end(body);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    const pieces: Buffer[] = [];
    for await (const piece of answer) pieces.push(piece as Buffer);
    return { status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() };
  }

  /** Sends JSON to identity, by its host at the gateway. */
  async identity(
    method: string,
    path: string,
    body?: object,
    token?: string,
  ): Promise<Record<string, unknown>> {
    const { status, text } = await this.ask(path, {
      method,
      host: this.hostOf("identity"),
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    assert.ok(status < 300, `${method} ${path}: ${status} ${text}`);
    return (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
  }

  /** Signs a user in. */
  async signIn(user: User): Promise<SignedIn> {
    return (await this.identity("POST", "/api/v1/auth/login", { ...user })) as never;
  }

  /** Sends a request signed by storage's root to an API of storage. */
  async storage(
    method: string,
    target: string,
    body = "",
    headers: Record<string, string> = {},
    agent?: Agent,
  ): Promise<string> {
    const isAdmin = target.startsWith("/api/") || target.startsWith("/admin/");
    const host = isAdmin ? this.vaultAdmin.host : this.hostOf("vault");
    const accessKey = this.readCredential("STORE_ACCESS_KEY_ID");
    const secret = this.readCredential("STORE_SECRET_ACCESS_KEY");
    const signed = signRequest(
      { accessKey, secret, region: "us-east-1" },
      {
        method,
        target,
        headers: { host, ...headers },
        payloadHash: hashHex(Buffer.from(body)),
        timeMs: Date.now(),
      },
    ).headers;
    const answer = isAdmin
      ? await fetch(`${this.vaultAdmin.origin}${target}`, {
          method,
          headers: signed,
          ...(body === "" ? {} : { body }),
        }).then(async (found) => ({ status: found.status, text: await found.text() }))
      : await this.ask(target, {
          method,
          host,
          headers: signed,
          body,
          ...(agent === undefined ? {} : { agent }),
        });
    assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${answer.text}`);
    return answer.text;
  }

  /** Adds a route of the gateway. */
  async addRoute(route: object): Promise<void> {
    await this.gateway("POST", "/api/v1/routes", route);
  }

  /** Adds a route whose target does not answer, and sends requests until the gateway stops them. Returns the target. */
  async breakRoute(prefix: string): Promise<string> {
    const target = `http://127.0.0.1:${await findFreePort()}`;
    await this.addRoute({ prefix, target, auth: { type: "none" } });
    await this.openCircuit(prefix);
    return target;
  }

  /** Sends requests to a route until the gateway stops them. */
  async openCircuit(prefix: string): Promise<void> {
    const endsMs = performance.now() + CIRCUIT_MS;
    let status = 0;
    while (status !== 503) {
      assert.ok(performance.now() < endsMs, `the circuit stays closed: ${status}`);
      ({ status } = await this.ask(prefix));
    }
  }

  /** Sends JSON to the gateway's API as its operator. */
  async gateway(method: string, path: string, body: object): Promise<void> {
    const { status, text } = await this.ask(path, {
      method,
      headers: {
        authorization: `Bearer ${this.readCredential("PLATFORM_GATE_AUTH_TOKEN")}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    assert.ok(status < 300, `${method} ${path}: ${status} ${text}`);
  }

  /** Calls `/api/v1` of a service; `token` is a bearer token or the name of a credential. POST if there is a body. */
  async callService(service: URL, token: string, path: string, body?: object): Promise<unknown> {
    const bearer = /^[A-Z_]+$/.test(token) ? this.readCredential(token) : token;
    const answer = await fetch(`${service.origin}/api/v1${path}`, {
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Opens a tunnel to a local port; resolves with its public address and the function that closes it. */
  async share(port: number, subdomain: string): Promise<{ url: URL; close: () => Promise<void> }> {
    const args = ["share", `127.0.0.1:${port}`, "--data", this.dataDir, "--subdomain", subdomain];
    const share = run(args, { PLATFORM_TUNNEL_DATA_DIR: makeFolder() });
    const address = new RegExp(`http://${subdomain}\\.localhost:\\d+`);
    const url = await share.waitFor((text) => address.exec(text)?.[0]);
    const close = async (): Promise<void> => {
      share.child.kill("SIGTERM");
      await share.exit;
    };
    return { url: new URL(url), close };
  }

  async #prepare(): Promise<void> {
    const { access_token: admin } = await this.signIn(ADMIN);
    this.admin = admin;
    await this.identity(
      "POST",
      "/api/v1/rbac/roles",
      { name: ROLE, permissions: PERMISSIONS },
      admin,
    );
    for (const user of [ADA, BOB])
      await this.identity("POST", "/api/v1/auth/register", { ...user });
    const { user } = (await this.signIn(ADA)) as never as { user: { id: string } };
    await this.identity("POST", `/api/v1/rbac/users/${user.id}/roles`, { roles: [ROLE] }, admin);
    await this.storage("PUT", `/${BUCKET}`);
    const policy = {
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Action: ["s3:GetObject", "s3:PutObject"],
          Resource: `arn:aws:s3:::${BUCKET}/\${aws:PrincipalTag/tenant}/*`,
        },
      ],
    };
    await this.storage(
      "PUT",
      `/api/v1/roles/${ROLE}`,
      JSON.stringify({ policies: { main: policy } }),
      { "content-type": "application/json" },
    );
  }
}

/** A server of the test behind the gateway, such as an application. */
export async function startUpstream(
  handle: Parameters<typeof createServer>[1],
): Promise<{ url: string; close: () => void }> {
  const server = createServer(handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
