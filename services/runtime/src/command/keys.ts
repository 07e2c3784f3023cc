// `platform keys rotate`: the key with which identity signs tokens.
import { setTimeout as sleep } from "node:timers/promises";
import { connectIdentity, fetchIdentityToken } from "../client/connect.ts";
import { findTarget, type Target } from "../client/target.ts";
import type { ServiceState } from "../data-folder/running-file.ts";

/** Services ask for an unknown key at most every 10 s. */
const CONFIRM_MS = 60_000;
const CONFIRM_PAUSE_MS = 500;
const REQUEST_MS = 10_000;
/** An operation of all services that needs a caller. */
const GUARDED_PATH = "/api/v1/admin/attention";

/** A key as identity lists it. */
interface Key {
  kid: string;
  state: "pending" | "active" | "retired" | "revoked";
  activates_at: string;
  expires_at?: string;
}

/**
 * Replaces the key. By default the new one is published a day before it signs, so that no token is refused; `isNow` signs with
 * it at once, revokes the former key, and waits until all services accept tokens of the new one.
 */
export async function runKeysRotate({ data, isNow }: { data: string; isNow: boolean }) {
  const target = await findTarget(data);
  const identity = await connectIdentity(target);
  const list = async (): Promise<Key[]> =>
    (await identity.call("GET", "/api/v1/auth/keys"))["keys"] as Key[];
  const former = (await list()).find(({ state }) => state === "active");
  const body = isNow
    ? { mode: "immediate", ...(former === undefined ? {} : { revoke_kid: former.kid }) }
    : { mode: "scheduled" };
  const { kid } = await identity.call("POST", "/api/v1/auth/keys/rotate", body);
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  print(`identity has a new signing key: ${String(kid)}`);
  if (isNow) {
    const services = await confirmServices(target);
    print(`  it signs from now on, and is known to ${services.join(", ")}`);
    print(`  the former key ${former?.kid ?? ""} is revoked: all its tokens are refused`);
    print("  to do: users and programs sign in again");
    return;
  }
  const keys = await list();
  const next = keys.find((key) => key.kid === kid);
  const ended = keys.find((key) => key.kid === former?.kid);
  print(
    `  published now, so that services have it before; it signs from ${next?.activates_at ?? ""}`,
  );
  print(`  tokens of the former key are accepted until ${ended?.expires_at ?? ""}`);
  print("  to do: nothing, unless a service has a copy of the key set");
}

/** Waits until all services accept a token that the new key has signed; returns their names. */
async function confirmServices(target: Target): Promise<string[]> {
  const token = await fetchIdentityToken(target);
  const services = target.state.services.filter(
    ({ state, project, probe_url: url }) =>
      state === "running" && project === undefined && url !== undefined,
  );
  const endsAtMs = performance.now() + CONFIRM_MS;
  await Promise.all(services.map((service) => confirm(service, token, endsAtMs)));
  return services.map(({ label }) => label);
}

async function confirm(
  { label, probe_url: base = "" }: ServiceState,
  token: string,
  endsAtMs: number,
): Promise<void> {
  for (;;) {
    const status = await ask(new URL(GUARDED_PATH, base), token);
    // Any other answer knows the caller.
    if (status !== 401 && status !== 503 && status !== undefined) return;
    if (performance.now() > endsAtMs) {
      throw new Error(
        `${label} does not accept tokens of the new key (status ${status ?? "unknown"}): see "platform logs ${label}"`,
      );
    }
    await sleep(CONFIRM_PAUSE_MS);
  }
}

async function ask(url: URL, token: string): Promise<number | undefined> {
  try {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(REQUEST_MS) });
    await answer.body?.cancel();
    return answer.status;
  } catch {
    return undefined;
  }
}
