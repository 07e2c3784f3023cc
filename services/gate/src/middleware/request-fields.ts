// The fields of a request as a guest sees them: without secrets of the gateway, and without what clients may not set.
import { FORWARDING_FIELDS } from "@platform/http1";
import { FieldList } from "@platform/wasm/http";
import type { GateExchange } from "../exchange/exchange.ts";
import {
  CONSOLE_CLIENT_HEADER,
  CONTROL_CALLER_HEADER,
  CONTROL_SECRET_HEADER,
} from "../shared-state/index.ts";

type Field = readonly [name: string, value: string];

/** Written by the gateway itself: those of clients are not forwarded. */
const OWN_FIELDS: readonly string[] = [
  ...FORWARDING_FIELDS,
  "X-User-Id",
  "X-User-Roles",
  "X-Tenant-Id",
  CONTROL_SECRET_HEADER,
  CONTROL_CALLER_HEADER,
  CONSOLE_CLIENT_HEADER,
];

/** Splits the fields of requests of one route into those that guests see, and the others. */
export class RequestFields {
  readonly #hidden: ReadonlySet<string>;

  /** `cutFields` are those that clients of the route may not set for its upstream. */
  constructor(cutFields: readonly string[]) {
    this.#hidden = new Set([...OWN_FIELDS, ...cutFields].map(spell));
  }

  /** The fields that guests see. Those that identify the user are the gateway's own. */
  open(exchange: GateExchange): FieldList {
    return new FieldList([
      ...this.#listSent(exchange, (isHidden) => !isHidden),
      ...listIdentity(exchange),
    ]);
  }

  /** All fields of the request after a guest has changed `fields`. */
  close(exchange: GateExchange, fields: FieldList): Field[] {
    const changed = fields.list().filter(([name]) => !this.#hidden.has(spell(name)));
    return [...changed, ...this.#listSent(exchange, (isHidden) => isHidden)];
  }

  #listSent(exchange: GateExchange, accept: (isHidden: boolean) => boolean): Field[] {
    const { fields } = exchange.head;
    const { holdsOperatorToken } = exchange.userData;
    const listed: Field[] = [];
    for (let index = 0; index < fields.count; index++) {
      const name = fields.name(index);
      const key = spell(name);
      const isHidden = this.#hidden.has(key) || (holdsOperatorToken && key === "authorization");
      if (accept(isHidden)) listed.push([name, fields.value(index)]);
    }
    return listed;
  }
}

function listIdentity({ userData }: GateExchange): Field[] {
  const { identityLines, authLines } = userData;
  if (identityLines === null && authLines === null) return [];
  const text = `${identityLines?.toString("latin1") ?? ""}${authLines?.toString("latin1") ?? ""}`;
  return text.split("\r\n").flatMap((line): Field[] => {
    const colon = line.indexOf(":");
    return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()]];
  });
}

/** Names as they are compared: requests have few names, again and again. */
const SPELLED = new Map<string, string>();
const SPELLED_MAX = 1_000;

// Some upstreams take underscores for hyphens.
function spell(name: string): string {
  const known = SPELLED.get(name);
  if (known !== undefined) return known;
  const spelled = name.toLowerCase().replaceAll("_", "-");
  if (SPELLED.size >= SPELLED_MAX) SPELLED.clear();
  SPELLED.set(name, spelled);
  return spelled;
}
