// Access to tunnels: share links and their cookies, Basic authentication of the client's choice, or a bearer of the relay.
import { createHash, timingSafeEqual } from "node:crypto";
import { Known } from "@platform/http1";
import type { RelayGuard } from "../identity.ts";
import type { Admission } from "./admission.ts";
import { answerTunnelError } from "./answers.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";
import type { RelayExchange } from "./request-state.ts";
import type { ShareAccess } from "./share-access.ts";
import type { Throttle } from "./throttle.ts";

/** Options of {@link Access}. */
export interface AccessOptions {
  guard: RelayGuard;
  throttle: Throttle;
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
    const { throttle, shares } = this.#options;
    const address = exchange.userData.forwarding.clientAddress;
    const link = shares.admitLink(exchange, tunnel, isOpen);
    if (link !== undefined) return link;
    const hasCookie = shares.readCookie(exchange, tunnel);
    if (isOpen || hasCookie) return admitted(exchange, false);
    const waitSeconds = throttle.waitSeconds(address);
    if (waitSeconds > 0) {
      answerTunnelError(exchange, "too_many_attempts", [["Retry-After", String(waitSeconds)]]);
      return ANSWERED;
    }
    const header = exchange.head.fields.get(Known.Authorization) ?? "";
    if (basic !== undefined && isBasic(header, basic)) return admitted(exchange, true);
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
    return isValid ? admitted(exchange, true) : refuse(exchange, tunnel);
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
