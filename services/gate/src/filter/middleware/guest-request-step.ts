// The step of WebAssembly guests that requests pass: `handle_request`.
import type { ContentFilter, HeadWriter, ResponseDraft, ResponseHead } from "@platform/http1";
import type { CompiledRoute, GateExchange, Step } from "../../exchange/exchange.ts";
import { type GuestParts, RequestGuests } from "../../middleware/request-guests.ts";
import { RouteGuests } from "../../middleware/route-guests.ts";
import type { GuestsSpec, RouteSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";
import { GuestResponseStep } from "./guest-response-step.ts";

/** Passes requests by the guests of a route, also of one that has only a guest for responses. */
export function createGuestRequestStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { guests } = spec.steps;
  if (guests === undefined) return undefined;
  const Created = guests.split?.sticky.by === "cookie" ? CookieStep : GuestRequestStep;
  return new Created(guests, spec, parts.guests);
}

class GuestRequestStep implements Step {
  readonly #guests: RouteGuests;
  readonly #parts: GuestParts;
  /** No later step of the route reads its requests; known with the first one. */
  #isLast: boolean | undefined;

  constructor(guests: GuestsSpec, spec: RouteSpec, parts: GuestParts) {
    this.#guests = new RouteGuests(guests, spec, parts.registry);
    this.#guests.warm();
    this.#parts = parts;
  }

  run(exchange: GateExchange, route: CompiledRoute): boolean | Promise<boolean> {
    const guests = new RequestGuests(exchange, route, this.#guests, this.#parts);
    exchange.userData.guests = guests;
    return guests.begin((this.#isLast ??= isLastReader(this, route)));
  }

  onRequestHead({ userData }: GateExchange, writer: HeadWriter): void {
    userData.guests?.writeFields(writer);
  }

  onResponseHead({ userData }: GateExchange, { status }: ResponseHead, writer: HeadWriter): void {
    if (status !== 101) return;
    if (userData.guests?.cookie !== undefined) writer.field("Set-Cookie", userData.guests.cookie);
    userData.guests?.onTunnel();
  }

  close(): void {
    this.#guests.close();
  }
}

/** True if only the guest for responses follows a step, which sees what the other one has added without reading the head. */
function isLastReader(step: Step, { steps: { list } }: CompiledRoute): boolean {
  return list.slice(list.indexOf(step) + 1).every((later) => later instanceof GuestResponseStep);
}

/** The cookie is for one client: it is added after the cache has taken its copy of the response. */
class CookieStep extends GuestRequestStep {
  filterResponse({ userData }: GateExchange, { headers }: ResponseDraft): readonly ContentFilter[] {
    const { guests } = userData;
    if (guests?.cookie !== undefined) headers.push(["Set-Cookie", guests.cookie]);
    return [];
  }
}
