// Revocations from a service's configuration: the set, the open streams, and the follower that updates both.
import type { Logger } from "../log/index.ts";
import type { MetricRegistry } from "../metrics/index.ts";
import type { Secret } from "../secrets/index.ts";
import type { Clock } from "../time/index.ts";
import { RevocationFollower } from "./revocation-follower.ts";
import { RevocationSet } from "./revocations.ts";
import { TokenStreams } from "./token-streams.ts";

/** Configuration keys of the feed; see `createTokenKeys`. */
export interface RevocationConfig {
  jwt_issuer?: string | undefined;
  revocations_url?: string | undefined;
  revocations_token?: Secret | undefined;
}

/** Options of {@link followRevocations}. */
export interface FollowRevocationsOptions {
  config: RevocationConfig;
  clock: Clock;
  log: Logger;
  metrics: MetricRegistry;
}

/** The revocations that a service follows. */
export interface FollowedRevocations {
  /** Empty if no feed is configured. */
  readonly revocations: RevocationSet;
  readonly streams: TokenStreams;
  /** Calls `listener` after entries were added and streams ended, for credentials derived from tokens. */
  readonly onAdded: (listener: () => void) => void;
  /** The warning of `/readyz`. */
  readonly describe: () => string | undefined;
  readonly stop: () => Promise<void>;
}

/**
 * Starts to follow the configured feed; without `revocations_url` the set stays empty. Throws if the URL is set without
 * token and issuer.
 */
export function followRevocations(options: FollowRevocationsOptions): FollowedRevocations {
  const { config, clock, log, metrics } = options;
  const { jwt_issuer: issuer = "" } = config;
  const revocations = new RevocationSet(issuer);
  const streams = new TokenStreams(revocations);
  const feed = readFeed(config);
  if (feed === undefined) {
    return {
      revocations,
      streams,
      onAdded: () => undefined,
      describe: () => undefined,
      stop: () => Promise.resolve(),
    };
  }
  const listeners: (() => void)[] = [];
  const follower = new RevocationFollower({
    ...feed,
    revocations,
    clock,
    log,
    onAdded: () => {
      const ended = streams.endRevoked();
      if (ended > 0) log.info("streams ended: their tokens were revoked", { streams: ended });
      for (const listener of listeners) listener();
    },
  });
  metrics.collect(follower);
  follower.start();
  return {
    revocations,
    streams,
    onAdded: (listener) => void listeners.push(listener),
    describe: () => follower.describe(),
    stop: () => follower.stop(),
  };
}

/** The feed of a configuration; undefined if there is none. Throws if the URL is set without token and issuer. */
export function readFeed(config: RevocationConfig): { url: string; token: Secret } | undefined {
  const { revocations_url: url, revocations_token: token, jwt_issuer: issuer } = config;
  if (url === undefined) return undefined;
  if (token === undefined || issuer === undefined) {
    throw new Error("revocations_url requires revocations_token and jwt_issuer");
  }
  return { url, token };
}
