// Carries out changes of keys: secrets are sealed again, keys of objects wrapped again, and former keys forgotten.
import type { Service } from "@platform/chassis";
import { every } from "@platform/kernel/time";
import type { RoleSessions } from "../access/role-sessions.ts";
import type { Storage } from "./storage.ts";

const REFRESH_EVERY_MS = 60_000;
/** Interval of attempts to seal secrets again: each copies the index, where a copy is kept. */
const SEAL_AGAIN_MS = 600_000;

/** Follows the keys, and reads those of the secret service again in intervals. */
export function followKeys(
  { log, clock, lifecycle, health }: Service,
  storage: Storage,
  sessions: RoleSessions,
): void {
  const { ring, secrets, store } = storage;
  let triedMs = clock.monotonicMs();
  const renew = async (): Promise<void> => {
    await sealAgain(storage, sessions);
    // A round that was running has begun before the change.
    await store.maintenance.rewrap();
    await store.maintenance.rewrap();
  };
  const note = (error: unknown): void => {
    log.error("a change of keys could not be carried out, and is continued later", { error });
  };
  const refresh = async (): Promise<void> => {
    await ring.refresh();
    // A change that was interrupted, or delayed by a snapshot.
    if (!ring.hasFormerBoxes || clock.monotonicMs() - triedMs < SEAL_AGAIN_MS) return;
    triedMs = clock.monotonicMs();
    await sealAgain(storage, sessions);
  };
  ring.rotation.onRotated = () => void renew().catch(note);
  const timer = every(REFRESH_EVERY_MS, refresh, note);
  const stopToken = secrets?.followToken();
  lifecycle.onDrain("keys", () => {
    stopToken?.();
    return timer.stop();
  });
  health.addWarning("secret service", () => secrets?.fault);
  if (ring.hasFormerBoxes) void sealAgain(storage, sessions).catch(note);
}

// The keys that sealed secrets before are forgotten when nothing on disk needs them.
async function sealAgain(
  { ring, directory, store }: Storage,
  sessions: RoleSessions,
): Promise<void> {
  const { boxId } = ring;
  directory.renewSecrets();
  await sessions.renewSecrets();
  await store.remotes.renewSecrets();
  // The copy of the index has the secrets of remotes, too.
  const findings = await store.maintenance.renewIndexCopy();
  if (findings.length === 0) ring.forgetBoxes(boxId);
}
