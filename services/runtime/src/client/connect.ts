// Clients of the services, with the credentials in the data directory.
import { createUrlSigner, type SigningIdentity } from "@platform/s3/signature";
import { ACCESS_KEY, SECRET_KEY } from "../services/vault.ts";
import { CLI_SECRET } from "../services/auth.ts";
import { PULSE_TOKEN } from "../services/pulse.ts";
import { RUNTIME_TOKEN } from "../services/runtime.ts";
import { formatFolder } from "../data-folder/data-folder.ts";
import { ApiClient, explain, send } from "./api-client.ts";
import { findService, requireCredential, type Target } from "./target.ts";

const CLIENT_ID = "platform-cli";

/** Connects to identity with the target's token, or as its client `platform-cli`, an administrator. */
export async function connectIdentity(target: Target): Promise<ApiClient> {
  const { url, label } = findService(target, "auth", "identity");
  const token = target.identityToken ?? (await fetchIdentityToken(target));
  const headers = { authorization: `Bearer ${token}` };
  return new ApiClient({ label, url, authorize: () => headers });
}

/** A new token of the client `platform-cli`. */
export function fetchIdentityToken(target: Target): Promise<string> {
  const { url, label } = findService(target, "auth", "identity");
  return fetchToken(label, url, requireCredential(target, CLI_SECRET));
}

/** Connects to the admin API of storage with the root key. */
export function connectStorage(target: Target, timeoutMs?: number): ApiClient {
  const { probe_url: url = "", label } = findService(target, "vault", "storage");
  return connectSigned(target, label, url, timeoutMs);
}

/** Connects to the object API of storage with the root key, for its settings in JSON. */
export function connectObjects(target: Target, timeoutMs?: number): ApiClient {
  const { url, label } = findService(target, "vault", "storage");
  return connectSigned(target, label, url, timeoutMs);
}

function connectSigned(target: Target, label: string, url: string, timeoutMs?: number): ApiClient {
  const authorize = createUrlSigner(findStorageIdentity(target));
  return new ApiClient({
    label,
    url,
    authorize,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

/** The root key of storage. */
export function findStorageIdentity(target: Target): SigningIdentity {
  return {
    accessKey: requireCredential(target, ACCESS_KEY),
    secret: requireCredential(target, SECRET_KEY),
    region: "us-east-1",
  };
}

/** Connects to messaging as the operator. */
export function connectMessaging(target: Target): ApiClient {
  const { url, label } = findService(target, "pulse", "messaging");
  const headers = { authorization: `Bearer ${requireCredential(target, PULSE_TOKEN)}` };
  return new ApiClient({ label, url, authorize: () => headers });
}

/** Connects to the API of the platform itself as the operator. */
export function connectPlatform(target: Target): ApiClient {
  const { api_url: url } = target.state;
  if (url === undefined) {
    throw new Error(
      `the platform that runs with ${formatFolder(target.dataDir)} is of an earlier version: restart it with this one`,
    );
  }
  const headers = { authorization: `Bearer ${requireCredential(target, RUNTIME_TOKEN)}` };
  return new ApiClient({
    label: "the platform",
    url,
    authorize: () => headers,
    timeoutMs: 180_000,
  });
}

async function fetchToken(label: string, url: string, secret: string): Promise<string> {
  const answer = await send(label, new URL("/api/v1/auth/token", url), {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${CLIENT_ID}:${secret}`).toString("base64")}`,
    },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  const text = await answer.text();
  if (answer.ok) return (JSON.parse(text) as { access_token: string }).access_token;
  throw new Error(
    answer.status === 401
      ? `${label} does not accept ${CLI_SECRET} of credentials.env: restart the platform, which registers it`
      : explain(label, answer.status, text),
  );
}
