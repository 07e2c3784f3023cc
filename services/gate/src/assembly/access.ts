// Admission: API keys, revocations, browser sign-ins, and the part of them that new worker threads begin with.
import { systemClock } from "@platform/kernel/time";
import { AccessControl } from "../access/access-control.ts";
import { createRevocations, type GateRevocations } from "../access/followed-revocations.ts";
import { SharedAccess } from "../access/shared-access.ts";
import { TicketKeys } from "../control/ticket-keys.ts";
import { OidcSignIn } from "../sign-in/oidc-sign-in.ts";
import type { WorkerSources } from "../worker/worker-pool.ts";
import { describeAiSources } from "./ai.ts";
import type { Base } from "./base.ts";
import type { Traffic } from "./traffic.ts";

/** The parts. */
export interface Access {
  readonly access: AccessControl;
  /** API keys and revocations of other gateways. */
  readonly sharedAccess: SharedAccess;
  readonly signIn: OidcSignIn;
  /** Undefined if no issuer is followed. */
  readonly revocations: GateRevocations | undefined;
  readonly sources: WorkerSources;
}

/** Loads the stored state and starts to follow revocations. */
export async function openAccess(
  { config, folder, lock, log, lifecycle, automatic }: Base,
  { controller, pools, metrics, middleware, ai }: Traffic,
): Promise<Access> {
  const clock = systemClock;
  const access = new AccessControl({
    folder,
    isEphemeral: config.ephemeral,
    lock,
    cookieKeys: config.cookie_keys?.map((text) => Buffer.from(text, "base64url")),
    clock,
    log,
    runExclusive: (work) => controller.runExclusive(work),
    apply: (change) => pools.apply({ access: change, upsert: [], remove: [] }),
  });
  await access.load();
  lifecycle.onDrain("state folder", () => access.close());
  const sharedAccess = new SharedAccess({
    readUrl: () => controller.state.globals.limitsRedisUrl,
    list: () => access.listShared(),
    merge: (entries) => access.mergeShared(entries),
    clock,
    log,
  });
  access.onChange((entries) => sharedAccess.publish(entries));
  const findClient = (client: string) => controller.findOidcClient(client);
  const signIn = new OidcSignIn({ findClient, access, clock, log });
  const revocations = createRevocations(config, { log, lifecycle }, (entries, version) =>
    pools.revoke(entries, version),
  );
  const [sharedKey] = config.cookie_keys ?? [];
  const ticketKeys = new TicketKeys({
    shared: sharedKey === undefined ? undefined : Buffer.from(sharedKey, "base64url"),
    onRotated: (keys) => pools.setTicketKeys(keys),
    onError: (error) =>
      log.error("cannot rotate the keys of TLS tickets", { error: String(error) }),
  });
  lifecycle.onDrain("keys of TLS tickets", () => ticketKeys.stop());
  const sources: WorkerSources = {
    listRevocations: revocations?.list,
    listAccess: () => access.list(),
    readTicketKeys: () => ticketKeys.keys,
    cookieKeys: access.cookieKeys,
    refreshSession: (client, sealed) => signIn.refresh(client, sealed),
    listGuests: () => middleware.list(),
    ...describeAiSources(ai),
    onUnknownName: automatic && ((name) => automatic.noteUnknown(name)),
    onGuestFigures: (worker, figures) => middleware.figures.add(worker, figures),
    onRetired: (block) => metrics.retire(block),
  };
  return { access, sharedAccess, signIn, revocations, sources };
}
