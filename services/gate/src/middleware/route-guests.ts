// The guests of a route, and the choice between those of a split.
import { hash, randomInt } from "node:crypto";
import { Known } from "@platform/http1";
import type { GateExchange } from "../exchange/exchange.ts";
import type { GuestsSpec, RouteSpec, SplitSticky } from "../shared-state/index.ts";
import { GuestBinding, type GuestRegistry } from "./guest-registry.ts";
import { RequestFields } from "./request-fields.ts";

/** Cookie that keeps a client at one guest of a split. */
const SPLIT_COOKIE = "_platform_split";
const SPLIT_SECONDS = 86_400;
const CHOICES = 2 ** 32;

/** The guests that one request passes. */
export interface ChosenGuests {
  readonly request: GuestBinding | undefined;
  readonly response: GuestBinding | undefined;
  /** Set-Cookie for a client that was not at this guest before. */
  readonly cookie?: string;
}

/** The guests of one route. */
export class RouteGuests {
  readonly fields: RequestFields;
  readonly #chosen: ChosenGuests | undefined;
  readonly #split: Split | undefined;

  constructor(guests: GuestsSpec, spec: RouteSpec, registry: GuestRegistry) {
    this.fields = new RequestFields(spec);
    const config = Buffer.from(guests.config);
    const bind = (reference: string) => new GuestBinding(registry, reference, config);
    if (guests.split === undefined) {
      const request = guests.request === undefined ? undefined : bind(guests.request);
      // The same name in both is one instance with one context.
      const isShared = guests.response === guests.request;
      const other = guests.response === undefined ? undefined : bind(guests.response);
      this.#chosen = { request, response: isShared ? request : other };
      this.#split = undefined;
    } else {
      const { sticky } = guests.split;
      const targets = guests.split.targets.map(({ name, weight }) => ({
        binding: bind(name),
        weight,
      }));
      this.#split = new Split(targets, sticky, spec.prefix);
    }
  }

  /** Creates the first instances of guests that are registered, so that no request waits for them. */
  warm(): void {
    for (const binding of this.#list()) binding.warm();
  }

  /** The route was removed. */
  close(): void {
    for (const binding of this.#list()) binding.close();
  }

  #list(): readonly GuestBinding[] {
    if (this.#split !== undefined) return this.#split.bindings;
    const { request, response } = this.#chosen!;
    return [request, response].filter((binding) => binding !== undefined);
  }

  /** The guests of a request. */
  choose(exchange: GateExchange): ChosenGuests {
    return this.#chosen ?? this.#split!.choose(exchange);
  }
}

interface SplitTarget {
  readonly binding: GuestBinding;
  readonly weight: number;
}

class Split {
  readonly #targets: readonly SplitTarget[];
  readonly #sum: number;
  readonly #sticky: SplitSticky;
  readonly #cookiePath: string;

  constructor(targets: readonly SplitTarget[], sticky: SplitSticky, prefix: string) {
    this.#targets = targets;
    this.#sum = targets.reduce((sum, { weight }) => sum + weight, 0);
    this.#sticky = sticky;
    this.#cookiePath = prefix === "/" ? prefix : prefix.replace(/\/$/, "");
  }

  get bindings(): GuestBinding[] {
    return this.#targets.map(({ binding }) => binding);
  }

  choose(exchange: GateExchange): ChosenGuests {
    const sticky = this.#sticky;
    switch (sticky.by) {
      case "ip":
        return use(this.#chooseBy(exchange.userData.forwarding.clientAddress));
      case "header":
        return use(this.#chooseBy(exchange.head.fields.find(sticky.name)));
      case "cookie":
        return this.#chooseByCookie(exchange);
      case "none":
        return use(this.#pick(randomInt(CHOICES)));
      default:
        return sticky satisfies never;
    }
  }

  // A hash is spread evenly, and stays the same on all workers and gateways.
  #chooseBy(text: string | undefined): GuestBinding {
    if (text === undefined) return this.#pick(randomInt(CHOICES));
    return this.#pick(Number.parseInt(hash("sha256", text, "hex").slice(0, 8), 16));
  }

  #chooseByCookie(exchange: GateExchange): ChosenGuests {
    const name = readCookie(exchange, SPLIT_COOKIE);
    const known = this.#targets.find(
      ({ binding, weight }) => weight > 0 && binding.reference === name,
    );
    if (known !== undefined) return use(known.binding);
    const binding = this.#pick(randomInt(CHOICES));
    const cookie = `${SPLIT_COOKIE}=${binding.reference}; Path=${this.#cookiePath}; Max-Age=${SPLIT_SECONDS}; HttpOnly; SameSite=Lax`;
    return { ...use(binding), cookie };
  }

  #pick(point: number): GuestBinding {
    let left = (point / CHOICES) * this.#sum;
    for (const { binding, weight } of this.#targets) {
      left -= weight;
      if (left < 0) return binding;
    }
    return this.#targets.findLast(({ weight }) => weight > 0)!.binding;
  }
}

function use(binding: GuestBinding): ChosenGuests {
  return { request: binding, response: binding };
}

function readCookie({ head }: GateExchange, wanted: string): string | undefined {
  const { fields } = head;
  for (let line = fields.first(Known.Cookie); line !== -1; line = fields.next(line)) {
    for (const pair of fields.value(line).split(";")) {
      const [name = "", value = ""] = pair.trim().split("=", 2);
      if (name === wanted) return value;
    }
  }
  return undefined;
}
