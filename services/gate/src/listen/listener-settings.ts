// Converts a worker's listener settings to the engine's types.
import type { ServerBounds, ServerTls } from "@platform/http1";
import type { LimitsSpec, TlsContextSpec } from "../shared-state/index.ts";

/** Limits of the listener. */
export function describeBounds(limits: LimitsSpec): ServerBounds {
  return {
    limits: {
      headBytesMax: limits.headBytesMax,
      fieldsMax: limits.headersMax,
      connectionsMax: limits.connectionsMax + limits.shedConnectionsMax,
      connectionsPerAddressMax:
        limits.connectionsPerAddressMax ?? Math.ceil(limits.connectionsMax / 2),
    },
    timeouts: {
      headMs: limits.headTimeoutMs,
      keepAliveMs: limits.keepAliveMs,
      bodyIdleMs: limits.clientIdleMs,
      writeStallMs: limits.clientIdleMs,
    },
    paces: {
      requestBody: { bytesMin: limits.bodyPaceBytes, windowMs: limits.bodyPaceWindowMs },
      answer: { bytesMin: limits.answerPaceBytes, windowMs: limits.answerPaceWindowMs },
    },
  };
}

/** Certificates of the listener; the first one is the default. `ticketKeys` are those of all threads. */
export function describeListenerTls(
  contexts: readonly TlsContextSpec[],
  ticketKeys: Uint8Array | undefined,
): ServerTls {
  const identities = contexts.map(({ names, certPem, keyPem }) => ({
    names,
    identity: { cert: certPem, key: keyPem },
  }));
  return {
    ...(ticketKeys === undefined ? {} : { ticketKeys }),
    fallback: identities[0]?.identity ?? null,
    names: new Map(
      identities.flatMap(({ names, identity }) => names.map((name) => [name, identity] as const)),
    ),
  };
}
