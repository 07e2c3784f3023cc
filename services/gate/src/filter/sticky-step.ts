// The sticky step: keeps a client at one target by a cookie.
import { hash } from "node:crypto";
import { Known, type HeadWriter, type ResponseHead } from "@platform/http1";
import type { CompiledRoute, GateExchange, Step } from "../exchange/exchange.ts";
import type { RouteSpec, StickySpec } from "../shared-state/index.ts";

const NONE = -1;
const ID_CHARACTERS = 16;

/** Prefers the target that the client's cookie names, as long as it is healthy. */
export function createStickyStep(spec: RouteSpec): Step | undefined {
  return spec.steps.sticky === undefined ? undefined : new StickyStep(spec.steps.sticky, spec);
}

class StickyStep implements Step {
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

  onResponseHead(exchange: GateExchange, _head: ResponseHead, writer: HeadWriter): void {
    const { target } = exchange.userData;
    if (target === null || target.index === exchange.userData.preferredTarget) return;
    writer.field("Set-Cookie", `${this.#name}=${this.#ids[target.index]}${this.#attributes}`);
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
