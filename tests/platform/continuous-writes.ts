// Clients that write to every service of a platform without a pause, and remember what was acknowledged.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Authenticator } from "../../services/auth/test/authenticator.ts";
import { createUrlSigner } from "@platform/s3/signature";
import { find, type Started } from "@platform/testing/platform-process";

/** A service that can be written to, by its product name. */
export type Writable = "identity" | "messaging" | "storage" | "mail" | "tunnel";

/** A write that a service has acknowledged. */
export interface Acknowledged {
  id: string;
  /** The text that was written; the service returns exactly this. */
  content: string;
}

/** A running platform. */
export interface Running {
  started: Started;
  /** Content of `credentials.env`. */
  credentials: ReadonlyMap<string, string>;
}

/** The tokens of an administrator who has signed in. */
export interface Tokens {
  id: string;
  access: string;
  session: string;
}

interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

interface Answer {
  status: number;
  text: string;
  body: Record<string, unknown>;
}

type StoreMethod = "GET" | "PUT" | "POST" | "DELETE";

const BUCKET = "photos";
const TOPIC = "orders";
const PAUSE_MS = 100;
/** Maximum of the operation. */
const TAIL_MAX = 1_000;
const PASSKEY = "/api/v1/auth/passkey";

/** Sends a request; the body of the answer is parsed if it is JSON. */
export async function ask(url: string, { headers, ...init }: Ask = {}): Promise<Answer> {
  const answer = await fetch(url, {
    ...init,
    headers: { "content-type": "application/json", ...headers },
  });
  const text = await answer.text();
  const body = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
  return { status: answer.status, text, body };
}

/** Sends a request to storage, signed with an access key. */
export function askStorage(
  { started }: Running,
  key: { id: string; secret: string },
  { method, path, body = "" }: { method: StoreMethod; path: string; body?: string },
): Promise<Answer> {
  const url = new URL(path, find(started, "vault").url);
  const identity = { accessKey: key.id, secret: key.secret, region: "us-east-1" };
  const signed = createUrlSigner(identity)(method, url, body);
  const headers = { ...signed, "content-type": "text/plain" };
  return ask(url.href, { method, headers, ...(body === "" ? {} : { body }) });
}

/** Signs in by password. */
export async function signIn(
  { started }: Running,
  credentials: { username: string; password: string },
): Promise<Tokens> {
  const url = `${find(started, "auth").url}/api/v1/auth/login`;
  const { status, text, body } = await ask(url, {
    method: "POST",
    body: JSON.stringify(credentials),
  });
  assert.equal(status, 200, text);
  const { id } = body["user"] as { id: string };
  return { id, access: String(body["access_token"]), session: String(body["session_token"]) };
}

/** Clients of one platform. */
export class Clients {
  readonly #running: Running;
  /** Of the administrator, for users. */
  readonly #tokens: Tokens;

  constructor(running: Running, tokens: Tokens) {
    this.#running = running;
    this.#tokens = tokens;
  }

  /** Writes once. Throws if the service refuses. */
  async write(service: Writable, number: number): Promise<Acknowledged> {
    const content = `${service} ${number} ${"x".repeat(1 + ((number * 97) % 3_000))}`;
    switch (service) {
      case "identity": {
        const name = `User ${number}`;
        const request = { username: `user-${number}`, name };
        const { user } = await this.#post("auth", "/api/v1/users", request, 201);
        return { id: (user as { id: string }).id, content: name };
      }
      case "messaging": {
        const message = { topic: TOPIC, payload: content };
        return { id: locate(await this.#post("pulse", "/api/v1/publish", message, 200)), content };
      }
      case "storage": {
        const id = `${number}.txt`;
        const { status, text } = await this.#store("PUT", `/${BUCKET}/${id}`, content);
        assert.equal(status, 200, text);
        return { id, content };
      }
      case "mail": {
        const mail = { to: "ada@example.org", subject: `Mail ${number}`, text: content };
        const { message_id: id } = await this.#post("notify", "/api/v1/send", mail, 200);
        return { id: String(id), content };
      }
      case "tunnel": {
        const tunnel = { subdomain: `name-${number}`, target: `localhost:${1_000 + number}` };
        const { id } = await this.#post("tunnel", "/api/v1/tunnels", tunnel, 201);
        return { id: String(id), content: JSON.stringify(tunnel) };
      }
      default:
        return service satisfies never;
    }
  }

  /** Reads what was written with these ids, in the form of `write`. */
  async read(service: Writable, ids: readonly string[]): Promise<Acknowledged[]> {
    const messages = service === "messaging" ? await this.#readMessages() : new Map();
    const found: Acknowledged[] = [];
    for (const id of ids) {
      const content =
        service === "messaging" ? (messages.get(id) ?? "") : await this.#readOne(service, id);
      found.push({ id, content });
    }
    return found;
  }

  async createBucket(): Promise<void> {
    const { status, text } = await this.#store("PUT", `/${BUCKET}`, "");
    assert.equal(status, 200, text);
  }

  /** Registers a passkey of the administrator. */
  async addPasskey(): Promise<Authenticator> {
    const authenticator = new Authenticator(find(this.#running.started, "auth").url);
    const path = `${PASSKEY}/register/begin`;
    const { challenge } = await this.#post("auth", path, { user_id: this.#tokens.id }, 200);
    const { publicKey } = challenge as { publicKey: Parameters<Authenticator["create"]>[0] };
    const created = authenticator.create(publicKey);
    await this.#post("auth", `${PASSKEY}/register/finish`, created, 201);
    return authenticator;
  }

  /** Signs in by a passkey. Throws if identity refuses. */
  async usePasskey(authenticator: Authenticator): Promise<void> {
    const { challenge } = await this.#post("auth", `${PASSKEY}/login/begin`, {}, 200);
    const { publicKey } = challenge as { publicKey: Parameters<Authenticator["get"]>[0] };
    await this.#post("auth", `${PASSKEY}/login/finish`, authenticator.get(publicKey), 200);
  }

  async #readMessages(): Promise<Map<string, string>> {
    const { body } = await this.#get("pulse", `/api/v1/tail?topic=${TOPIC}&n=${TAIL_MAX}`);
    const messages = body["messages"] as { payload: string }[];
    return new Map(messages.map((message) => [locate({ ...message }), message.payload]));
  }

  async #readOne(service: Exclude<Writable, "messaging">, id: string): Promise<string> {
    switch (service) {
      case "identity": {
        const { body } = await this.#get("auth", `/api/v1/users/${id}`);
        return (body["user"] as { name: string } | undefined)?.name ?? "";
      }
      case "storage":
        return (await this.#store("GET", `/${BUCKET}/${id}`, "")).text;
      case "mail": {
        const { body } = await this.#get("notify", `/api/v1/inbox/${id}`);
        return String(body["text"]).trimEnd();
      }
      case "tunnel": {
        const { body } = await this.#get("tunnel", `/api/v1/tunnels/${id}`);
        const { subdomain, target } = body;
        return JSON.stringify({ subdomain, target });
      }
      default:
        return service satisfies never;
    }
  }

  #get(name: string, path: string): Promise<Answer> {
    return ask(this.#url(name, path), { headers: this.#authorize(name) });
  }

  async #post(
    name: string,
    path: string,
    content: object,
    expected: number,
  ): Promise<Record<string, unknown>> {
    const body = JSON.stringify(content);
    const headers = this.#authorize(name);
    const answer = await ask(this.#url(name, path), { method: "POST", headers, body });
    assert.equal(answer.status, expected, `${path}: ${answer.text}`);
    return answer.body;
  }

  #store(method: StoreMethod, path: string, body: string): Promise<Answer> {
    const { credentials } = this.#running;
    const id = credentials.get("STORE_ACCESS_KEY_ID")!;
    const secret = credentials.get("STORE_SECRET_ACCESS_KEY")!;
    return askStorage(this.#running, { id, secret }, { method, path, body });
  }

  #authorize(name: string): Record<string, string> {
    if (name === "auth") return { authorization: `Bearer ${this.#tokens.access}` };
    const names: Record<string, string> = {
      pulse: "PLATFORM_PULSE_TOKEN",
      notify: "PLATFORM_NOTIFY_TOKEN",
      tunnel: "PLATFORM_TUNNEL_AUTH_TOKEN",
    };
    const token = this.#running.credentials.get(names[name] ?? "");
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  #url(name: string, path: string): string {
    return new URL(path, find(this.#running.started, name).url).href;
  }
}

function locate({ partition, offset }: Record<string, unknown>): string {
  return `${String(partition)}/${String(offset)}`;
}

/** Writes to services until it is stopped. */
export class ContinuousWrites {
  readonly acknowledged: Record<Writable, Acknowledged[]> = {
    identity: [],
    messaging: [],
    storage: [],
    mail: [],
    tunnel: [],
  };
  readonly #clients: Clients;
  readonly #services: readonly Writable[];
  readonly #lanes: Promise<void>[];
  #isOver = false;

  constructor(clients: Clients, services: readonly Writable[]) {
    this.#clients = clients;
    this.#services = services;
    this.#lanes = services.map((service) => this.#run(service));
  }

  /** Resolves when each service has acknowledged this number of writes. */
  async waitFor(count: number): Promise<void> {
    while (this.#services.some((service) => this.acknowledged[service].length < count)) {
      await Promise.race([sleep(PAUSE_MS), ...this.#lanes]);
    }
  }

  /** Everything acknowledged until now. */
  copy(): Record<Writable, Acknowledged[]> {
    return structuredClone(this.acknowledged);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#lanes);
  }

  async #run(service: Writable): Promise<void> {
    for (let number = 0; !this.#isOver; number += 1) {
      this.acknowledged[service].push(await this.#clients.write(service, number));
      await sleep(PAUSE_MS);
    }
  }
}
