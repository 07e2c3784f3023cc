// Converts a worker's listener settings to the engine's types.
import type { ServerBounds, ServerTls, TlsIdentity } from "@platform/http1";
import type { LimitsSpec, TicketKeySpec, TlsContextSpec, TlsSpec } from "../shared-state/index.ts";

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

/** Certificates of the listener for the engine, which loads only those that it does not have. */
export class ListenerTls {
  #identities = new Map<string, TlsIdentity>();
  readonly #onUnknownName: (name: string) => void;

  /** `onUnknownName` is called if the settings ask for it. */
  constructor(onUnknownName: (name: string) => void) {
    this.#onUnknownName = onUnknownName;
  }

  /** `ticketKeys` are those of all threads. */
  describe(
    { fallback, contexts, challenges, reportsUnknown, clientCertificates }: TlsSpec,
    ticketKeys: TicketKeySpec | undefined,
  ): ServerTls {
    const identities = new Map<string, TlsIdentity>();
    const find = ({ certPem, keyPem }: Pick<TlsContextSpec, "certPem" | "keyPem">): TlsIdentity => {
      const text = `${certPem}\n${keyPem}`;
      const identity = this.#identities.get(text) ?? { cert: certPem, key: keyPem };
      identities.set(text, identity);
      return identity;
    };
    const names = contexts.flatMap((context) => {
      const identity = find(context);
      return context.names.map((name) => [name, identity] as const);
    });
    const described = {
      ...(ticketKeys === undefined ? {} : { ticketKeys }),
      fallback: fallback === undefined ? null : find(fallback),
      names: new Map(names),
      ...(clientCertificates === undefined
        ? {}
        : {
            clientCertificates: { mode: clientCertificates.mode, ca: clientCertificates.caPem },
          }),
      ...(reportsUnknown === true ? { onUnknownName: this.#onUnknownName } : {}),
      ...(challenges === undefined
        ? {}
        : {
            challenges: new Map(
              Object.entries(challenges).map(([name, pair]) => [name, find(pair)] as const),
            ),
          }),
    };
    this.#identities = identities;
    return described;
  }
}
