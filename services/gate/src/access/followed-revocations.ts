// The revocations of the followed issuer: one follower for all workers.
import {
  readFeed,
  type Revocation,
  RevocationFollower,
  RevocationSet,
} from "@platform/kernel/identity";
import type { HealthRegistry } from "@platform/kernel/health";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { Collector, MetricRegistry } from "@platform/kernel/metrics";
import { followShared } from "@platform/kernel/secrets";
import { every, systemClock } from "@platform/kernel/time";
import type { GateConfig } from "../config/document.ts";

const WARNING_CHECK_MS = 1000;

/** A source of revocations outside of this gateway. */
interface FollowedSource extends Collector {
  /** The warning of `/readyz`; undefined if there is none. */
  describe: () => string | undefined;
  stop: () => Promise<void>;
}

interface ReportParts {
  registry: MetricRegistry;
  /** Receives the warnings for the feed of conditions; workers answer the readiness probe. */
  health: HealthRegistry;
  lifecycle: Lifecycle;
  /** The warning of the disk of the gateway's state, which serving requests does not need. */
  describeDisk: () => string | undefined;
  /** Shows warnings in the responses of the readiness probe, in place of the previous ones. */
  showWarnings: (warnings: Record<string, string>) => void;
}

/** Revocations that a gateway follows. */
export interface GateRevocations {
  follower: RevocationFollower;
  list: () => { issuer: string; entries: Revocation[]; policyVersion: number | undefined };
}

/** Creates the follower of all workers: it passes each page to them, and new workers begin with all entries. */
export function createRevocations(
  config: GateConfig,
  { log, lifecycle }: { log: Logger; lifecycle: Pick<Lifecycle, "followSecret"> },
  onAdded: (entries: readonly Revocation[], policyVersion: number | undefined) => void,
): GateRevocations | undefined {
  const shared = followShared(config, (name, value) => lifecycle.followSecret(name, value));
  const feed = readFeed({ ...config, ...shared });
  if (feed === undefined) return undefined;
  const { jwt_issuer: issuer = "" } = config;
  const revocations = new RevocationSet(issuer);
  const follower = new RevocationFollower({
    ...feed,
    revocations,
    onAdded: (entries) => onAdded(entries, revocations.policyVersion),
    clock: systemClock,
    log,
  });
  follower.start();
  const list = () => ({
    issuer,
    entries: revocations.list(),
    policyVersion: revocations.policyVersion,
  });
  return { follower, list };
}

/** Reports the sources in metrics and readiness, and stops them with the gateway. */
export function reportSources(
  sources: readonly FollowedSource[],
  { registry, health, lifecycle, describeDisk, showWarnings }: ReportParts,
): void {
  for (const source of sources) {
    registry.collect(source);
    health.addWarning(source.name, () => source.describe());
  }
  health.addWarning("disk", describeDisk);
  let shown = "{}";
  const timer = every(
    WARNING_CHECK_MS,
    () => {
      const warnings: Record<string, string> = {};
      const described = sources.map((source) => [source.name, source.describe()] as const);
      for (const [name, warning] of [...described, ["disk", describeDisk()] as const])
        if (warning !== undefined) warnings[name] = warning;
      const text = JSON.stringify(warnings);
      if (text === shown || lifecycle.stopping.aborted) return;
      shown = text;
      showWarnings(warnings);
    },
    () => undefined,
  );
  lifecycle.onDrain("revocations", async () => {
    await timer.stop();
    await Promise.all(sources.map((source) => source.stop()));
  });
}
