// The fields of a request as a guest sees them: without secrets of the gateway, and without what clients may not set.
import { FORWARDING_FIELDS } from "@platform/http1";
import { FieldList, type LateFields } from "@platform/wasm/http";
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

/** The fields of one request, which are read when a guest, or the change of the request, needs them. */
class OpenedFields implements LateFields {
  readonly count: number;
  /** The fields that guests see and change. */
  readonly seen = new FieldList(this);
  readonly #exchange: GateExchange;
  readonly #hidden: ReadonlySet<string>;
  #split: SplitFields | undefined;

  constructor(exchange: GateExchange, hidden: ReadonlySet<string>) {
    this.count = exchange.head.fields.count;
    this.#exchange = exchange;
    this.#hidden = hidden;
  }

  get hidden(): readonly Field[] {
    return this.#open().hidden;
  }

  read(): readonly Field[] {
    return this.#open().seen;
  }

  #open(): SplitFields {
    return (this.#split ??= splitFields(this.#exchange, this.#hidden));
  }
}

interface SplitFields {
  readonly seen: readonly Field[];
  readonly hidden: readonly Field[];
}

/** Splits the fields of requests of one route into those that guests see, and the others. */
export class RequestFields {
  readonly #hidden: ReadonlySet<string>;

  /** `cutFields` are those that clients of the route may not set for its upstream. */
  constructor(cutFields: readonly string[]) {
    this.#hidden = new Set([...OWN_FIELDS, ...cutFields].map(spell));
  }

  /** The fields of a request. */
  open(exchange: GateExchange): OpenedFields {
    return new OpenedFields(exchange, this.#hidden);
  }

  /**
   * The fields to add to the request, if the guest has done nothing else than that: all others stay as the client sent them.
   * Undefined if it has read or removed fields, or set one that the request has.
   */
  listAdded({ seen }: OpenedFields, { head }: GateExchange): readonly Field[] | undefined {
    const { edits } = seen;
    if (edits === undefined) return undefined;
    const added: Field[] = [];
    for (const { name, value, replaces } of edits) {
      const spelled = spell(name);
      if (this.#hidden.has(spelled)) continue;
      if (replaces && hasField(head, name.includes("_") ? name.toLowerCase() : spelled))
        return undefined;
      added.push([name, value]);
    }
    return added;
  }

  /**
   * All fields of the request after a guest has changed those that it saw. A client that names a field in Connection, which goes
   * no further, cannot take away one that the guest has set.
   */
  close({ seen, hidden }: OpenedFields): Field[] {
    const fields: Field[] = [];
    for (const field of seen.list()) {
      const key = spell(field[0]);
      if (this.#hidden.has(key)) continue;
      fields.push(key === "connection" ? [field[0], dropOwn(field[1], seen)] : field);
    }
    for (const field of hidden) fields.push(field);
    return fields;
  }
}

/** A value of Connection without the names of fields that the guest has set. */
function dropOwn(value: string, seen: FieldList): string {
  const options = value.split(",").filter((option) => !seen.isOwn(option.trim().toLowerCase()));
  return options.join(",").trim();
}

/** Splits the fields of a request. Those that identify the user are the gateway's own. */
function splitFields(exchange: GateExchange, hiddenNames: ReadonlySet<string>): SplitFields {
  const { fields } = exchange.head;
  const { holdsOperatorToken } = exchange.userData;
  const seen: Field[] = [];
  const hidden: Field[] = [];
  for (let index = 0; index < fields.count; index++) {
    const name = fields.name(index);
    const key = spell(name);
    const isHidden = hiddenNames.has(key) || (holdsOperatorToken && key === "authorization");
    (isHidden ? hidden : seen).push([name, fields.value(index)]);
  }
  for (const field of listIdentity(exchange)) seen.push(field);
  return { seen, hidden };
}

function hasField({ fields }: GateExchange["head"], key: string): boolean {
  for (let index = 0; index < fields.count; index++) if (fields.nameIs(index, key)) return true;
  return false;
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
