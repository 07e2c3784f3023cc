// The sticky step: keeps a client at one target by a cookie.
import { hash } from "node:crypto";
import {
  type ContentFilter,
  type HeadWriter,
  Known,
  type ResponseDraft,
  type ResponseHead,
} from "@platform/http1";
import type { CompiledRoute, GateExchange, Step } from "../exchange/exchange.ts";
import type { RouteSpec, StickySpec } from "../shared-state/index.ts";

const NONE = -1;
const ID_CHARACTERS = 16;

/** Prefers the target that the client's cookie names, as long as it is healthy. */
export function createStickyStep(spec: RouteSpec): Step | undefined {
  const { sticky, cache } = spec.steps;
  if (sticky === undefined) return undefined;
  return cache === undefined ? new HeadStickyStep(sticky, spec) : new DraftStickyStep(sticky, spec);
}

abstract class StickyStep implements Step {
  readonly #name: string;
  readonly #ids: readonly string[];
  readonly #attributes: string;

  constructor({ cookie, maxAgeSeconds, isSecure }: StickySpec, { targets, prefix }: RouteSpec) {
    this.#name = cookie;
    // A cookie does not reveal the address of its target, and stays valid when the order of targets changes.
    this.#ids = targets.map(({ url }) => hash("sha256", url, "hex").slice(0, ID_CHARACTERS));
    const path = prefix === "/" ? prefix : prefix.replace(/\/$/, "");
    const age = maxAgeSeconds === undefined ? "" : `; Max-Age=${maxAgeSeconds}`;
    const secure = isSecure ? "; Secure" : "";
    this.#attributes = `; Path=${path}${age}; HttpOnly; SameSite=Lax${secure}`;
  }

  run(exchange: GateExchange, { balancer }: CompiledRoute): boolean {
    const index = this.#findIndex(exchange);
    // A canary that was rolled back receives nothing, not even its own clients.
    const isUsable = index !== NONE && balancer.isWeighted(index);
    exchange.userData.preferredTarget = isUsable ? index : NONE;
    return true;
  }

  /** The cookie of a client that was not at this target before; undefined for others. */
  protected describeCookie({ userData }: GateExchange): string | undefined {
    const { target, preferredTarget, models } = userData;
    // The target of a model is not one of those that clients are kept at.
    if (target === null || models !== null || target.index === preferredTarget) return undefined;
    return `${this.#name}=${this.#ids[target.index]}${this.#attributes}`;
  }

  #findIndex({ head }: GateExchange): number {
    const { fields } = head;
    for (let line = fields.first(Known.Cookie); line !== NONE; line = fields.next(line)) {
      for (const pair of fields.value(line).split(";")) {
        const [name = "", value = ""] = pair.trim().split("=", 2);
        if (name === this.#name) return this.#ids.indexOf(value);
      }
    }
    return NONE;
  }
}

class HeadStickyStep extends StickyStep {
  onResponseHead(exchange: GateExchange, _head: ResponseHead, writer: HeadWriter): void {
    const cookie = this.describeCookie(exchange);
    if (cookie !== undefined) writer.field("Set-Cookie", cookie);
  }
}

/** The cookie is for one client: it is added after the cache has taken its copy of the response. */
class DraftStickyStep extends StickyStep {
  filterResponse(exchange: GateExchange, { headers }: ResponseDraft): readonly ContentFilter[] {
    const cookie = this.describeCookie(exchange);
    if (cookie !== undefined) headers.push(["Set-Cookie", cookie]);
    return [];
  }

  // A change of protocols has no draft, and is not stored.
  onResponseHead(exchange: GateExchange, { status }: ResponseHead, writer: HeadWriter): void {
    const cookie = status === 101 ? this.describeCookie(exchange) : undefined;
    if (cookie !== undefined) writer.field("Set-Cookie", cookie);
  }
}
