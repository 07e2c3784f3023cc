// The declared service inside a test: a free port, databases in memory, a clock that moves by hand, and on request the
// platform in memory.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { formatLogLine } from "@platform/kernel/log";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import type { Database } from "./database/database.ts";
import type { FakeMail } from "./fakes/mail.ts";
import { FakePlatform } from "./fakes/platform.ts";
import { Message, encodePayload, type PublishOptions } from "./platform/messaging.ts";
import { createSessionCookie } from "./platform/sign-in.ts";
import { declared } from "./service/declared.ts";
import { startService } from "./service/start-service.ts";
import { createTelemetry } from "./service/telemetry.ts";

export type { FakeMail } from "./fakes/mail.ts";

/** Options of {@link startTestService}. */
export interface TestOptions {
  /** Environment variables, such as PLATFORM_JWT_SECRET; those of the process are not used. */
  env?: Readonly<Record<string, string>>;
  /** Initial time; default 2030-01-01T00:00:00Z. */
  now?: Date;
  /** True keeps databases in the files and servers that `env` names; by default they are in memory. */
  keepsData?: boolean;
  /** True runs `objects`, `messages`, `mail` and `auth` in memory. A process can start one service with fakes. */
  fakes?: boolean;
}

/** A clock that runs schedules. */
export interface TestClock extends Omit<ManualClock, "advance"> {
  /** Moves the clock, runs the schedules that are due, and waits for them. */
  advance(ms: number): Promise<void>;
}

/** A service under test. */
export interface TestService {
  /** For example `http://127.0.0.1:43210`. */
  readonly url: string;
  readonly clock: TestClock;
  /** Log lines as objects, oldest first. Those of failed requests are printed with the lines of their file as well. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** The databases by their names. */
  readonly databases: Readonly<Record<string, Database>>;
  /** Requests a path of the service; redirects are returned. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Runs the schedules that are due, and waits for them. */
  runSchedules(): Promise<void>;
  /** Drains and stops the service. */
  stop(): Promise<void>;
}

/** A user of a test. */
export interface TestUser {
  id: string;
  /** Verified; default none. */
  email?: string;
  /** Default: the id. */
  username?: string;
  /** Display name; default: the username. */
  name?: string;
  /** Scopes of a token for routes with `requires`; without them, requests have the session cookie only. */
  scopes?: readonly string[];
}

/** A service under test with the platform in memory. */
export interface FakedTestService extends TestService {
  /** Mails that the service has sent. */
  readonly mail: { readonly sent: readonly FakeMail[] };
  readonly messages: {
    /** Messages of all topics, oldest first. */
    readonly published: readonly Message[];
    /**
     * Publishes a message as another program. Resolves when the groups of the topic have acknowledged it, with a rejection
     * after 5 s, or immediately if nothing has subscribed.
     */
    deliver(topic: string, payload: unknown, options?: PublishOptions): Promise<void>;
  };
  readonly objects: {
    /** Keys in their order. */
    readonly keys: readonly string[];
    /** The content of an object; undefined if it does not exist. */
    read(key: string): Buffer | undefined;
  };
  /** The same service for a user, with a session as after a sign-in, and with a token if it has scopes. */
  as(user: TestUser): Pick<TestService, "fetch">;
}

const START = Date.UTC(2030, 0, 1);
const DRAIN_MS = 2_000;
const DELIVERY_MS = 5_000;
const POLL_MS = 5;
let hasFakes = false;

/**
 * Starts the service that the imported files declare.
 *
 * ```ts
 * import "./main.service.ts";
 * const app = await startTestService({ fakes: true });
 * test.after(() => app.stop());
 * const answer = await app.as({ id: "ada", email: "ada@example.com" }).fetch("/notes/1");
 * ```
 */
export function startTestService(options: TestOptions & { fakes: true }): Promise<FakedTestService>;
export function startTestService(options?: TestOptions): Promise<TestService>;
export async function startTestService(options: TestOptions = {}): Promise<TestService> {
  const { env = {}, now = new Date(START), fakes: isFaked = false } = options;
  const clock = createManualClock(now.getTime());
  if (!isFaked) return start(options, env, clock);
  if (hasFakes) throw new Error("startTestService: a process can start one service with fakes");
  hasFakes = true;
  const secret =
    env["PLATFORM_SERVICE_JWT_SECRET"] ??
    env["PLATFORM_JWT_SECRET"] ??
    randomBytes(32).toString("base64url");
  const fakes = new FakePlatform(clock, secret);
  const variables = { ...(await fakes.start()), PLATFORM_JWT_SECRET: secret, ...env };
  try {
    const service = await start(options, variables, clock, () => fakes.messages.tick());
    return addFakes(service, fakes);
  } catch (error) {
    await fakes.stop();
    throw error;
  }
}

async function start(
  { keepsData = false }: TestOptions,
  env: Readonly<Record<string, string>>,
  clock: ManualClock,
  onAdvance: () => void = () => {},
): Promise<TestService> {
  const { routes, schedules } = declared;
  if (routes.length + schedules.length === 0) {
    throw new Error(
      'startTestService: no route and no schedule is declared; import the service first, such as "./main.service.ts"',
    );
  }
  const log: Record<string, unknown>[] = [];
  const settled = { PORT: "0", HOST: "127.0.0.1", ...env };
  declared.environment = { env: settled, clock, inMemory: !keepsData };
  const { caches, settings } = declared;
  const identity = { name: settings.name ?? "test", version: "0.0.0" };
  const writeLog = (line: string): void => {
    const event = JSON.parse(line) as Record<string, unknown>;
    log.push(event);
    // A test that expects another answer sees why.
    if (event["frame"] !== undefined) process.stderr.write(formatLogLine(event, false));
  };
  const base = { ...identity, settings, caches, clock, writeLog, isReporting: true };
  const telemetry = createTelemetry(base);
  const lifecycle = createEmbeddedLifecycle(telemetry.log);
  const { port, scheduler } = await startService({
    service: declared,
    ...identity,
    telemetry,
    lifecycle,
  }).catch(async (error: unknown) => {
    await lifecycle.close(DRAIN_MS);
    throw error;
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    clock: {
      ...clock,
      advance: async (ms) => {
        clock.advance(ms);
        onAdvance();
        await scheduler.runDue();
      },
    },
    log,
    databases: Object.fromEntries(declared.databases.map((database) => [database.name, database])),
    fetch: (path, init = {}) => fetch(new URL(path, url), { redirect: "manual", ...init }),
    runSchedules: () => scheduler.runDue(),
    stop: () => lifecycle.close(DRAIN_MS),
  };
}

function addFakes(service: TestService, fakes: FakePlatform): FakedTestService {
  const { mail, messages, objects } = fakes;
  return {
    ...service,
    mail,
    objects,
    messages: {
      get published() {
        return messages.published.map((message) => new Message(message));
      },
      deliver: (topic, payload, options = {}) => deliver(messages, topic, payload, options),
    },
    as: (user) => {
      const { id, email, username = id, name = username, scopes } = user;
      const headers: [string, string][] = [
        [
          "cookie",
          createSessionCookie({ id, username, name, email, isEmailVerified: email !== undefined }),
        ],
      ];
      if (scopes !== undefined) {
        const claims = { sub: id, email, preferred_username: username, scope: scopes.join(" ") };
        headers.push(["authorization", `Bearer ${fakes.createToken(claims)}`]);
      }
      return {
        fetch: (path, init = {}) => {
          const all = new Headers(init.headers);
          for (const [field, value] of headers) if (!all.has(field)) all.set(field, value);
          return service.fetch(path, { ...init, headers: all });
        },
      };
    },
    stop: async () => {
      // Subscriptions of the service end with their connections.
      const stopped = service.stop();
      await fakes.stop();
      await stopped;
    },
  };
}

async function deliver(
  messages: FakePlatform["messages"],
  topic: string,
  payload: unknown,
  { id, delayMs, ttlMs, ...options }: PublishOptions,
): Promise<void> {
  const renamed = { message_id: id, delay_ms: delayMs, ttl_ms: ttlMs };
  const { offset } = messages.publish({ topic, ...encodePayload(payload), ...renamed, ...options });
  if (offset === undefined) return;
  const endsMs = performance.now() + DELIVERY_MS;
  for (;;) {
    const open = messages.findUnacknowledged(topic, offset);
    if (open === undefined) {
      throw new Error(`messages.deliver: the service has not subscribed to ${topic}`);
    }
    if (open.length === 0) return;
    if (performance.now() > endsMs) {
      throw new Error(
        `messages.deliver: not acknowledged within ${DELIVERY_MS / 1_000} s by ${open.join(", ")}`,
      );
    }
    await sleep(POLL_MS);
  }
}
