// Applications: everything that one needs, limited to its bucket, its topics and sending mail.
import { formatCommand } from "../data-folder/data-folder.ts";
import { ApiError, type ApiClient } from "./api-client.ts";
import { allowOrigins } from "./bucket-cors.ts";
import { createBucket, createBucketPolicy } from "./bucket.ts";
import { connectIdentity, connectMessaging, connectStorage } from "./connect.ts";
import { findService, type Target } from "./target.ts";

/** Names of applications. */
export const APPLICATION_NAME: RegExp = /^[a-z][a-z0-9-]{0,39}$/;
/** Lets tokens of users carry the roles that the application may act with. */
const USE_SCOPE = "platform:use";
const USER_SCOPES = ["openid", "profile", "email", "offline_access", USE_SCOPE];

/** An application to create. */
export interface ApplicationOptions {
  name: string;
  /** Addresses to which identity may return users after a sign-in. */
  redirects: readonly string[];
  bucket: string | undefined;
  /** Patterns of topics: `*` matches one level, `#` any number. */
  topics: readonly string[];
  /** True if it may send mail. */
  mail: boolean;
}

/** Steps back, last first, if a later step fails. */
type Undo = () => Promise<unknown>;

/** Environment variables of an application, or a part of them. */
export type Lines = readonly (readonly [name: string, value: string])[];

/** Creates an application; returns its environment variables, whose secrets are not stored. Undoes its steps if one fails. */
export async function createApplication(
  target: Target,
  options: ApplicationOptions,
): Promise<Lines> {
  const { name } = options;
  if (!APPLICATION_NAME.test(name))
    throw new Error(
      `the name ${JSON.stringify(name)} is invalid: 1 to 40 lower-case letters, digits or -, beginning with a letter`,
    );
  const undo: Undo[] = [];
  try {
    return [
      ...(await addClient(target, options, undo)),
      ...(options.mail ? [["MAIL_URL", findService(target, "notify", "mail").url] as const] : []),
      ...(options.topics.length === 0 ? [] : await addTopics(target, options, undo)),
      ...(options.bucket === undefined
        ? []
        : await addBucket(target, options, options.bucket, undo)),
    ];
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(reportLeftover);
    throw error;
  }
}

// An OAuth client and the role that its tokens carry. Storage and messaging decide by the role.
async function addClient(
  target: Target,
  options: ApplicationOptions,
  undo: Undo[],
): Promise<Lines> {
  const { name, redirects } = options;
  const role = nameRole(name);
  const identity = await connectIdentity(target);
  // Storage requires these for keys of users; which objects they reach is the role's policy in storage.
  const permissions = [
    ...(options.bucket === undefined ? [] : ["vault:read", "vault:write"]),
    ...(options.mail ? ["notify:send"] : []),
  ];
  await identity
    .call("POST", "/api/v1/rbac/roles", {
      name: role,
      description: `Application ${name}`,
      permissions,
    })
    .catch((error: unknown) => {
      throw explainTaken(error, target, name);
    });
  undo.push(() => identity.call("DELETE", `/api/v1/rbac/roles/${role}`));
  const hasUsers = redirects.length > 0;
  const scopes = [...permissions, ...(hasUsers ? USER_SCOPES : [])];
  const client = await identity.call("POST", "/api/v1/auth/clients", {
    client_name: name,
    redirect_uris: redirects,
    grant_types: [
      "client_credentials",
      ...(hasUsers ? ["authorization_code", "refresh_token"] : []),
    ],
    response_types: hasUsers ? ["code"] : [],
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    // Allowed by the administrator who adds the application: tokens for the platform's services, with this role of its users.
    platform_audience: "always",
    ...(hasUsers ? { acting_roles: [role] } : {}),
  });
  const id = String(client["client_id"]);
  undo.push(() => identity.call("DELETE", `/api/v1/auth/clients/${id}`));
  await identity.call("POST", `/api/v1/rbac/clients/${id}/roles`, { roles: [role] });
  const { issuer, token_endpoint } = await identity.call(
    "GET",
    "/.well-known/openid-configuration",
  );
  return [
    ["OIDC_ISSUER", String(issuer)],
    ["OIDC_TOKEN_URL", String(token_endpoint)],
    ["OIDC_CLIENT_ID", id],
    ["OIDC_CLIENT_SECRET", String(client["client_secret"])],
    ...redirects.slice(0, 1).map((url) => ["OIDC_REDIRECT_URL", url] as const),
  ];
}

async function addTopics(
  target: Target,
  options: ApplicationOptions,
  undo: Undo[],
): Promise<Lines> {
  const { name, topics } = options;
  const messaging = connectMessaging(target);
  const path = `/api/v1/access/roles/${nameRole(name)}`;
  const rules = topics.map((pattern) => ({ topics: pattern, allow: ["publish", "subscribe"] }));
  await messaging.call("PUT", path, { rules });
  undo.push(() => messaging.call("DELETE", path));
  const service = target.state.services.find((item) => item.name === "pulse");
  const kafka = service?.listeners.find((listener) => listener.name === "kafka");
  return [
    ["MESSAGING_URL", service?.url ?? ""],
    ...(kafka === undefined ? [] : [["KAFKA_BROKERS", `localhost:${kafka.port}`] as const]),
    ["MESSAGING_TOPICS", topics.join(",")],
  ];
}

// An existing bucket is used as it is. The application itself has a key, so that it works with all S3 tools; users with
// the role can exchange their tokens for keys.
async function addBucket(
  target: Target,
  { name, redirects }: ApplicationOptions,
  bucket: string,
  undo: Undo[],
): Promise<Lines> {
  const storage = connectStorage(target);
  const user = nameRole(name);
  if (await createBucket(storage, bucket)) {
    undo.push(() => storage.call("DELETE", `/api/v1/buckets/${bucket}`));
  }
  // Pages of the application upload with presigned URLs.
  const origins = [...new Set(redirects.map((url) => new URL(url).origin))];
  if (origins.length > 0) await allowOrigins(target, bucket, origins);
  const policies = { bucket: createBucketPolicy(bucket) };
  await storage.call("PUT", `/api/v1/roles/${user}`, { policies });
  undo.push(() => storage.call("DELETE", `/api/v1/roles/${user}`));
  await storage.call("PUT", `/api/v1/users/${user}`, { policies });
  undo.push(() => storage.call("DELETE", `/api/v1/users/${user}`));
  const key = await storage.call("POST", "/api/v1/keys", {
    user,
    description: `Application ${name}`,
  });
  const { url = "", probe_url: api = "" } =
    target.state.services.find((item) => item.name === "vault") ?? {};
  return [
    ["STORAGE_URL", api],
    ["AWS_ENDPOINT_URL_S3", url],
    ["AWS_REGION", "us-east-1"],
    ["AWS_ACCESS_KEY_ID", String(key["access_key"])],
    ["AWS_SECRET_ACCESS_KEY", String(key["secret_key"])],
    ["S3_BUCKET", bucket],
    ["S3_ROLE_ARN", `arn:aws:iam:::role/${user}`],
  ];
}

/** The role of an application, and its user in storage. */
export function nameRole(name: string): string {
  return `app-${name}`;
}

function explainTaken(error: unknown, { dataDir }: Target, name: string): unknown {
  if (error instanceof ApiError && error.status === 409)
    return new ApplicationTaken(
      `there is already an application ${name} (role ${nameRole(name)}): choose another name, or remove it with "${formatCommand(dataDir, `app remove ${name}`)}"`,
    );
  return error;
}

function reportLeftover(error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(`platform: undoing a step failed: ${reason}\n`);
}

/** Removes an application's client, role, topic rules and keys; false if there is no such role. Its bucket and topics stay. */
export async function removeApplication(target: Target, name: string): Promise<boolean> {
  const identity = await connectIdentity(target);
  const role = nameRole(name);
  await removeClients(identity, name);
  const isKnown = await remove(identity, `/api/v1/rbac/roles/${role}`);
  const isRunning = (service: string): boolean =>
    target.state.services.some((item) => item.name === service);
  if (isRunning("pulse")) await remove(connectMessaging(target), `/api/v1/access/roles/${role}`);
  if (isRunning("vault")) {
    await remove(connectStorage(target), `/api/v1/users/${role}`);
    await remove(connectStorage(target), `/api/v1/roles/${role}`);
  }
  return isKnown;
}

/**
 * Replaces the secrets of an application, of its client and in storage; returns the variables that change. The former ones are
 * accepted for `overlapSeconds`. Throws if there is no such application.
 */
export async function renewSecrets(
  target: Target,
  name: string,
  overlapSeconds: number,
): Promise<Lines> {
  const identity = await connectIdentity(target);
  const { client_id: id } = await findApplication(identity, name);
  const path = `/api/v1/auth/clients/${id}/secret?overlap_seconds=${overlapSeconds}`;
  const { client_secret: secret } = await identity.call("POST", path);
  return [
    ["OIDC_CLIENT_ID", id],
    ["OIDC_CLIENT_SECRET", String(secret)],
    ...(await renewStorageKey(target, name, overlapSeconds)),
  ];
}

// The new key exists before the former ones end. None for an application without a bucket.
async function renewStorageKey(
  target: Target,
  name: string,
  overlapSeconds: number,
): Promise<Lines> {
  if (!target.state.services.some((service) => service.name === "vault")) return [];
  const storage = connectStorage(target);
  const user = nameRole(name);
  const { keys } = (await storage.call("GET", `/api/v1/keys?user=${user}`)) as {
    keys: { access_key: string; expires_at: string | null }[];
  };
  if (keys.length === 0) return [];
  const description = `Application ${name}`;
  const key = await storage.call("POST", "/api/v1/keys", { user, description });
  const end = Date.now() + overlapSeconds * 1_000;
  for (const { access_key: former, expires_at: ends } of keys) {
    const path = `/api/v1/keys/${former}`;
    const isOver = ends !== null && Date.parse(ends) <= Date.now();
    if (overlapSeconds === 0 || isOver) await storage.call("DELETE", path);
    else if (ends === null || Date.parse(ends) > end) {
      await storage.call("PATCH", path, { expires_at: new Date(end).toISOString() });
    }
  }
  return [
    ["AWS_ACCESS_KEY_ID", String(key["access_key"])],
    ["AWS_SECRET_ACCESS_KEY", String(key["secret_key"])],
  ];
}

/** The client of an application at identity. */
export interface ListedApplication {
  name: string;
  client_id: string;
  redirect_uris: readonly string[];
  /** Space-separated; "" for none. */
  scope: string;
}

/** There is no application with this name. */
export class ApplicationMissing extends Error {
  constructor(name: string) {
    super(`there is no application ${JSON.stringify(name)}`);
    this.name = "ApplicationMissing";
  }
}

/** An application of this name, or its role, exists. */
export class ApplicationTaken extends Error {
  override readonly name: string = "ApplicationTaken";
}

/**
 * Lets an application act with its own role and others of its users; returns all that it may act with. Throws if there is
 * no such application, or users do not sign in to it.
 */
export async function allowRoles(
  target: Target,
  name: string,
  roles: readonly string[],
): Promise<readonly string[]> {
  const identity = await connectIdentity(target);
  const { client_id: id } = await findApplication(identity, name);
  const path = `/api/v1/auth/clients/${id}`;
  const { scope, acting_roles = [] } = (await identity.call("GET", path)) as {
    scope?: string;
    acting_roles?: string[];
  };
  const scopes = scope?.split(" ") ?? USER_SCOPES;
  if (!scopes.includes("openid"))
    throw new Error(`users do not sign in to the application ${name}: it has its own role only`);
  const allowed = [...new Set([...acting_roles, nameRole(name), ...roles])];
  await identity.call("PATCH", path, {
    acting_roles: allowed,
    scope: [...new Set([...scopes, USE_SCOPE])].join(" "),
  });
  return allowed;
}

/** The applications that `createApplication` made: clients that have the role of their name. */
export async function* listApplications(identity: ApiClient): AsyncGenerator<ListedApplication> {
  let cursor: string | undefined;
  do {
    const page = await readApplications(identity, cursor);
    yield* page.items;
    cursor = page.next;
  } while (cursor !== undefined);
}

/** The applications among a page of identity's clients, at most 100, and the cursor of the next page. */
export async function readApplications(
  identity: ApiClient,
  cursor?: string,
): Promise<{ items: ListedApplication[]; next: string | undefined }> {
  const query = cursor === undefined ? "" : `?cursor=${encodeURIComponent(cursor)}`;
  const page = (await identity.call("GET", `/api/v1/auth/clients${query}`)) as {
    clients: {
      client_id: string;
      client_name?: string;
      redirect_uris?: string[];
      scope?: string;
    }[];
    next_cursor: string | null;
  };
  const items: ListedApplication[] = [];
  for (const {
    client_id,
    client_name: name = "",
    redirect_uris = [],
    scope = "",
  } of page.clients) {
    if (!APPLICATION_NAME.test(name)) continue;
    const path = `/api/v1/rbac/clients/${client_id}/roles`;
    const { roles } = (await identity.call("GET", path)) as { roles: string[] };
    if (roles.includes(nameRole(name))) items.push({ name, client_id, redirect_uris, scope });
  }
  return { items, next: page.next_cursor ?? undefined };
}

async function findApplication(identity: ApiClient, name: string): Promise<ListedApplication> {
  for await (const application of listApplications(identity)) {
    if (application.name === name) return application;
  }
  throw new ApplicationMissing(name);
}

async function removeClients(identity: ApiClient, name: string): Promise<void> {
  for await (const client of listApplications(identity)) {
    if (client.name === name)
      await identity.call("DELETE", `/api/v1/auth/clients/${client.client_id}`);
  }
}

// False if there was nothing to remove.
async function remove(api: ApiClient, path: string): Promise<boolean> {
  try {
    await api.call("DELETE", path);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}
