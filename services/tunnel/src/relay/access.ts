// Access to tunnels: share links and their cookies, Basic authentication of the client's choice, or a bearer of the relay.
import { createHash, timingSafeEqual } from "node:crypto";
import { Known } from "@platform/http1";
import { toPlatformError } from "@platform/kernel/errors";
import type { RelayGuard } from "../identity.ts";
import type { Admission } from "./admission.ts";
import { answerTunnelError } from "./answers.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";
import type { RelayExchange } from "./request-state.ts";
import type { ShareAccess } from "./share-access.ts";
import type { Throttles } from "./throttle.ts";
import { admitBearer } from "./throttled-guard.ts";

/** Options of {@link Access}. */
export interface AccessOptions {
  guard: RelayGuard;
  throttles: Throttles;
  shares: ShareAccess;
}

const ANSWERED: Admission = { kind: "answered" };

/** Decides which public requests reach a tunnel. */
export class Access {
  readonly #options: AccessOptions;

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Admits a request, or answers it. */
  admit(exchange: RelayExchange, tunnel: ConnectedTunnel): Admission | Promise<Admission> {
    const { share_auth: basic } = tunnel.offer;
    const isOpen = basic === undefined && tunnel.row.auth_required === 0;
    const { throttles, shares } = this.#options;
    const link = shares.admitLink(exchange, tunnel, isOpen);
    if (link !== undefined) return link;
    const hasCookie = shares.readCookie(exchange, tunnel);
    if (isOpen || hasCookie) return admitted(exchange, false);
    const header = exchange.head.fields.get(Known.Authorization) ?? "";
    if (tunnel.row.auth_required === 1 && /^bearer /i.test(header)) {
      return this.#admitBearer(exchange, tunnel, header);
    }
    if (header === "") return refuse(exchange, tunnel);
    const address = exchange.userData.forwarding.clientAddress;
    const waitSeconds = throttles.guesses.waitSeconds(address);
    if (waitSeconds > 0) {
      answerTunnelError(exchange, "too_many_attempts", [["Retry-After", String(waitSeconds)]]);
      return ANSWERED;
    }
    if (basic !== undefined && isBasic(header, basic)) return admitted(exchange, true);
    throttles.guesses.noteFailure(address);
    return refuse(exchange, tunnel);
  }

  async #admitBearer(
    exchange: RelayExchange,
    tunnel: ConnectedTunnel,
    header: string,
  ): Promise<Admission> {
    const { sequence } = exchange;
    const { clientAddress } = exchange.userData.forwarding;
    // Without configured credentials the guard admits local programs only, whatever the token.
    const headers = new Headers({ authorization: header, "x-forwarded-for": "public" });
    const request = { headers, method: "GET", path: "/", peer: { kind: "unknown" } } as const;
    const refusal = await admitBearer(this.#options, request, clientAddress).then(
      () => undefined,
      (error: unknown) => toPlatformError(error),
    );
    if (exchange.sequence !== sequence || exchange.aborted) return ANSWERED;
    if (refusal === undefined) return admitted(exchange, true);
    if (refusal.status !== 429) return refuse(exchange, tunnel);
    const wait = refusal.headers["Retry-After"] ?? "60";
    answerTunnelError(exchange, "too_many_attempts", [["Retry-After", wait]]);
    return ANSWERED;
  }
}

function admitted({ userData }: RelayExchange, authorization: boolean): Admission {
  return { kind: "admitted", strip: { cookie: userData.cookie !== null, authorization } };
}

function refuse(exchange: RelayExchange, tunnel: ConnectedTunnel): Admission {
  const challenge = tunnel.offer.share_auth === undefined ? "Bearer" : 'Basic realm="tunnel"';
  answerTunnelError(exchange, "unauthorized", [["WWW-Authenticate", challenge]]);
  return ANSWERED;
}

function isBasic(header: string, expected: string): boolean {
  const encoded = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(header)?.[1];
  if (encoded === undefined) return false;
  const given = Buffer.from(encoded, "base64");
  return timingSafeEqual(digest(given), digest(Buffer.from(expected)));
}

// Digests have the same length, whatever was sent.
function digest(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}
