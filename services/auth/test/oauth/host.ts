// The OAuth core behind its own listener: real tables, and a user who signs in and consents when asked.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { openDatabase } from "@platform/kernel/db";
import { createEgress } from "@platform/kernel/egress";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { systemClock, type Clock } from "@platform/kernel/time";
import type { SigningAlgorithm } from "../../src/database/key.ts";
import { migrateAll, type AuthDatabase, type AuthTables } from "../../src/database/schema.ts";
import { KeyRing } from "../../src/key/key-ring.ts";
import { createSecretBox } from "@platform/kernel/secrets";
import { OAuth } from "../../src/oauth/oauth.ts";
import { createCorePages } from "../../src/pages/core-pages.ts";
import { createFrame } from "../../src/pages/create-pages.ts";
import { PolicyStore } from "../../src/rbac/policy-store.ts";
import { createRbac } from "../../src/rbac/rights.ts";
import type { SessionInfo } from "../../src/session/session.ts";
import { Sessions } from "../../src/session/sessions.ts";
import { SessionTokens } from "../../src/session/token.ts";
import type { Account } from "../../src/user/account.ts";
import { Users } from "../../src/user/users.ts";
import { Cookies } from "../../src/web/cookies.ts";
import { readPath } from "../../src/web/request.ts";
import { Router } from "../../src/web/router.ts";
import { SessionResolver } from "../../src/web/session-resolver.ts";

/** The user that signs in. */
export const USER_ID = "user-1";

const DAY_MS = 24 * 3_600_000;
const INTERACTION_PATH = "/interaction/";

/** Options of a host. */
export interface HostOptions {
  url: string;
  clock?: Clock;
  /** The issuer of the first node, for another node on its database. */
  issuer?: string;
  algorithm?: SigningAlgorithm;
  pkce?: "public";
  keyPollMs?: number;
  /** A clock for the key ring alone. */
  keyClock?: Clock;
}

/** One node under test. */
export interface Host {
  oauth: OAuth;
  keys: KeyRing;
  database: AuthDatabase;
  issuer: string;
  /** The node's own address, which for a second node is not the issuer. */
  origin: string;
  log: string[];
  /** Signs the user in and returns the session. */
  signIn(more?: Partial<SessionInfo>): Promise<SessionInfo>;
  findAccount(): Promise<Account>;
  /** The user's response to consent pages. */
  answer: "agree" | "deny";
  close(): Promise<void>;
}

/** Starts a node. The first node fills the database. */
export async function startHost(options: HostOptions): Promise<Host> {
  const clock = options.clock ?? systemClock;
  const database = openDatabase<AuthTables>({ url: options.url, service: "auth" });
  await migrateAll(database, clock.now());
  const lines: string[] = [];
  const log = createLogger({
    service: "test",
    level: "debug",
    format: "json",
    write: (line) => void lines.push(line),
  });
  const algorithm = options.algorithm ?? "ES256";
  const box = createSecretBox("auth", [Buffer.alloc(32, 7)]);
  const keys = new KeyRing({
    database,
    box,
    clock: options.keyClock ?? clock,
    log,
    algorithm,
    ...(options.keyPollMs === undefined ? {} : { pollMs: options.keyPollMs }),
  });
  await keys.start();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const issuer = options.issuer ?? origin;
  const secret = Buffer.alloc(32, 9);
  const ids = createIdSource({ clock });
  const policy = new PolicyStore(database, clock);
  const users = new Users({ database, clock, ids, policy });
  const sessions = new Sessions({
    database,
    clock,
    ids,
    tokens: new SessionTokens(secret),
    idleMs: DAY_MS,
    absoluteMs: DAY_MS,
  });
  const oauth = await OAuth.start({
    issuer,
    algorithm,
    audience: "platform",
    providedSecrets: new Map(),
    pkce: options.pkce ?? "all",
    secret,
    database,
    box,
    keys,
    clock,
    log,
    users,
    sessions,
    rbac: createRbac(database),
    egressFetch: createEgress({ allowedNetworks: ["127.0.0.0/8"], timeoutMs: 2_000 }),
    resolver: new SessionResolver({
      sessions,
      users,
      cookies: new Cookies(issuer),
      clock,
      sessionAbsoluteMs: DAY_MS,
    }),
    pages: createCorePages(createFrame({ name: "Platform", host: "localhost", words: [] })),
    needsSecondFactor: async () => false,
  });
  const host: Host = {
    oauth,
    keys,
    database,
    issuer,
    origin,
    log: lines,
    answer: "agree",
    signIn: (more) => insertSession(database, clock, more),
    findAccount: async () => (await users.find(USER_ID))!,
    close: async () => {
      await oauth.close();
      await keys.stop();
      await closeServer(server);
      await database.close();
    },
  };
  const router = new Router([oauth.dispatcher]);
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const path = readPath(request);
    const match = router.find(path);
    if (match !== undefined) {
      match.handler.handle(request, response, path, match.route);
      return;
    }
    if (request.url?.startsWith(INTERACTION_PATH) === true) {
      answerInteraction(host, request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
      return;
    }
    response.writeHead(404).end();
  });
  if (options.issuer === undefined) await fill(host);
  return host;
}

// The user, a role and two scopes.
async function fill(host: Host): Promise<void> {
  const { db } = host.database;
  await db
    .insertInto("auth_users")
    .values({
      id: USER_ID,
      username: "Ada",
      username_key: "ada",
      email: "ada@example.com",
      email_key: "ada@example.com",
      email_verified: 1,
      name: "Ada Lovelace",
      picture: null,
      phone: null,
      tenant: "acme",
      password_hash: null,
      password_changed_at: null,
      disabled: 0,
      epoch: 1,
      created_at: 0,
      updated_at: 0,
    })
    .execute();
  await addRole(host, "reader", "orders:read");
  await db
    .insertInto("auth_role_bindings")
    .values({ role: "reader", subject_kind: "user", subject_id: USER_ID })
    .execute();
  for (const [name, permission] of [
    ["orders.read", "orders:read"],
    ["orders.write", "orders:write"],
  ] as const) {
    await db
      .insertInto("auth_scopes")
      .values({ name, description: "", first_party: 0, created_at: 0 })
      .execute();
    await db.insertInto("auth_scope_permissions").values({ scope: name, permission }).execute();
  }
  await host.oauth.refresh();
}

/** Makes a role with one permission. */
export async function addRole(host: Host, name: string, permission: string): Promise<void> {
  const { db } = host.database;
  await db
    .insertInto("auth_roles")
    .values({ name, description: "", builtin: 0, created_at: 0 })
    .execute();
  await db.insertInto("auth_role_permissions").values({ role: name, permission }).execute();
}

/** Binds a role to a client. */
export async function bindClient(host: Host, clientId: string, role = "reader"): Promise<void> {
  await host.database.db
    .insertInto("auth_role_bindings")
    .values({ role, subject_kind: "client", subject_id: clientId })
    .execute();
}

async function insertSession(
  database: AuthDatabase,
  clock: Clock,
  more: Partial<SessionInfo> = {},
): Promise<SessionInfo> {
  const now = clock.now();
  const session: SessionInfo = {
    id: crypto.randomUUID(),
    userId: USER_ID,
    authTime: now,
    amr: ["pwd"],
    acr: "1",
    createdAt: now,
    lastSeenAt: now,
    expiresAt: now + DAY_MS,
    ...more,
  };
  await database.db
    .insertInto("auth_sessions")
    .values({
      id: session.id,
      user_id: session.userId,
      token_hash: session.id,
      token_issued_at: 0,
      previous_hash: null,
      previous_until: null,
      auth_time: session.authTime,
      amr: JSON.stringify(session.amr),
      acr: session.acr,
      device: "",
      user_agent: "",
      ip: "",
      created_at: now,
      last_seen_at: now,
      idle_expires_at: session.expiresAt,
      absolute_expires_at: session.expiresAt,
    })
    .execute();
  return session;
}

async function answerInteraction(
  host: Host,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { oauth } = host;
  const interaction = await oauth.interactions.find(request, response);
  if (interaction === undefined) {
    response.writeHead(400).end("no interaction");
    return;
  }
  const location =
    host.answer === "deny"
      ? await oauth.interactions.finish(request, response, { kind: "denied" })
      : interaction.prompt === "login"
        ? await oauth.interactions.finish(request, response, {
            kind: "login",
            session: await host.signIn({ acr: interaction.acrValues?.split(" ")[0] ?? "1" }),
          })
        : await oauth.interactions.finish(request, response, { kind: "consent", isAsked: true });
  response.writeHead(303, { Location: location }).end();
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
