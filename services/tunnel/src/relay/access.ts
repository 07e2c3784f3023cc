// Access to tunnels that require credentials: Basic authentication of the client's choice, or a bearer of the relay.
import { createHash, timingSafeEqual } from "node:crypto";
import { Known } from "@platform/http1";
import type { RelayGuard } from "../identity.ts";
import { answerTunnelError } from "./answers.ts";
import type { ConnectedTunnel, Stripping } from "./connected-tunnel.ts";
import type { RelayExchange } from "./request-state.ts";
import type { Throttle } from "./throttle.ts";

/** The decision about a public request; after `answered` nothing is left to do. */
export type Admission =
  | { readonly kind: "admitted"; readonly strip: Stripping }
  | { readonly kind: "answered" };

/** Options of {@link Access}. */
export interface AccessOptions {
  guard: RelayGuard;
  throttle: Throttle;
}

const OPEN: Admission = { kind: "admitted", strip: { cookie: false, authorization: false } };
const BY_HEADER: Admission = { kind: "admitted", strip: { cookie: false, authorization: true } };
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
    if (basic === undefined && tunnel.row.auth_required === 0) return OPEN;
    const { throttle } = this.#options;
    const address = exchange.userData.forwarding.clientAddress;
    const waitSeconds = throttle.waitSeconds(address);
    if (waitSeconds > 0) {
      answerTunnelError(exchange, "too_many_attempts", [["Retry-After", String(waitSeconds)]]);
      return ANSWERED;
    }
    const header = exchange.head.fields.get(Known.Authorization) ?? "";
    if (basic !== undefined && isBasic(header, basic)) return BY_HEADER;
    if (tunnel.row.auth_required === 1 && /^bearer /i.test(header)) {
      return this.#admitBearer(exchange, tunnel, header);
    }
    if (header !== "") throttle.noteFailure(address);
    return refuse(exchange, tunnel);
  }

  async #admitBearer(
    exchange: RelayExchange,
    tunnel: ConnectedTunnel,
    header: string,
  ): Promise<Admission> {
    const { guard, throttle } = this.#options;
    const { sequence } = exchange;
    let isValid = false;
    try {
      // Without configured credentials the guard admits local programs only, whatever the token.
      const headers = new Headers({ authorization: header, "x-forwarded-for": "public" });
      await guard({ headers, method: "GET", path: "/", peer: { kind: "unknown" } });
      isValid = true;
    } catch {
      throttle.noteFailure(exchange.userData.forwarding.clientAddress);
    }
    if (exchange.sequence !== sequence || exchange.aborted) return ANSWERED;
    return isValid ? BY_HEADER : refuse(exchange, tunnel);
  }
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
