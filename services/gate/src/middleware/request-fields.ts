// The fields of a request as a guest sees them: without secrets of the gateway, and without what clients may not set.
import { FORWARDING_FIELDS } from "@platform/http1";
import { FieldList } from "@platform/wasm/http";
import type { GateExchange } from "../exchange/exchange.ts";
import {
  CLIENT_CERT_FIELDS,
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
  ...CLIENT_CERT_FIELDS,
  CONTROL_SECRET_HEADER,
  CONTROL_CALLER_HEADER,
  CONSOLE_CLIENT_HEADER,
];

/** The fields of one request. */
interface OpenedFields {
  /** The fields that guests see and change. */
  readonly seen: FieldList;
  readonly hidden: readonly Field[];
}

/** Splits the fields of requests of one route into those that guests see, and the others. */
export class RequestFields {
  readonly #hidden: ReadonlySet<string>;

  /** `cutFields` are those that clients of the route may not set for its upstream. */
  constructor(cutFields: readonly string[]) {
    this.#hidden = new Set([...OWN_FIELDS, ...cutFields].map(spell));
  }

  /** Splits the fields of a request. Those that identify the user are the gateway's own. */
  open(exchange: GateExchange): OpenedFields {
    const { fields } = exchange.head;
    const { holdsOperatorToken } = exchange.userData;
    const seen: Field[] = [];
    const hidden: Field[] = [];
    for (let index = 0; index < fields.count; index++) {
      const name = fields.name(index);
      const key = spell(name);
      const isHidden = this.#hidden.has(key) || (holdsOperatorToken && key === "authorization");
      (isHidden ? hidden : seen).push([name, fields.value(index)]);
    }
    for (const field of listIdentity(exchange)) seen.push(field);
    return { seen: new FieldList(seen), hidden };
  }

  /** All fields of the request after a guest has changed those that it saw. */
  close({ seen, hidden }: OpenedFields): Field[] {
    const fields: Field[] = [];
    for (const field of seen.list()) if (!this.#hidden.has(spell(field[0]))) fields.push(field);
    for (const field of hidden) fields.push(field);
    return fields;
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
