// The revocations of the followed issuer: one follower for all workers.
import {
  readFeed,
  type Revocation,
  RevocationFollower,
  RevocationSet,
} from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { every, systemClock } from "@platform/kernel/time";
import type { GateConfig } from "../config/document.ts";

const WARNING_CHECK_MS = 1000;

interface RevocationParts {
  registry: MetricRegistry;
  lifecycle: Lifecycle;
  /** Shows a warning in the responses of the readiness probe, or removes it. */
  showWarning: (text: string | undefined) => void;
}

interface GateRevocations {
  follower: RevocationFollower;
  list: () => { issuer: string; entries: Revocation[] };
}

/** Creates the follower of all workers: it passes each page to them, and new workers begin with all entries. */
export function createRevocations(
  config: GateConfig,
  log: Logger,
  onAdded: (entries: readonly Revocation[]) => void,
): GateRevocations | undefined {
  const feed = readFeed(config);
  if (feed === undefined) return undefined;
  const { jwt_issuer: issuer = "" } = config;
  const revocations = new RevocationSet(issuer);
  const follower = new RevocationFollower({
    ...feed,
    revocations,
    onAdded,
    clock: systemClock,
    log,
  });
  follower.start();
  return { follower, list: () => ({ issuer, entries: revocations.list() }) };
}

/** Reports the follower in metrics and readiness, and stops it with the gateway. */
export function reportRevocations(
  follower: RevocationFollower | undefined,
  { registry, lifecycle, showWarning }: RevocationParts,
): void {
  if (follower === undefined) return;
  registry.collect(follower);
  let shown: string | undefined;
  const timer = every(
    WARNING_CHECK_MS,
    () => {
      const warning = follower.describe();
      if (warning === shown || lifecycle.stopping.aborted) return;
      shown = warning;
      showWarning(warning);
    },
    () => undefined,
  );
  lifecycle.onDrain("revocations", async () => {
    await timer.stop();
    await follower.stop();
  });
}
