// The fields of a request as a guest sees them: without secrets of the gateway, and without what clients may not set.
import { findKnownField, FORWARDING_FIELDS, ID_FIELDS, Known } from "@platform/http1";
import { type FieldEdit, FieldList, type LateFields } from "@platform/wasm/http";
import type { GateExchange } from "../exchange/exchange.ts";
import {
  CLIENT_CERT_FIELDS,
  CONSOLE_CLIENT_HEADER,
  CONTROL_CALLER_HEADER,
  CONTROL_SECRET_HEADER,
  type RouteSpec,
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

/** Judgement of a name that guests set on requests of one route. */
interface NameRule {
  /** In lower case. */
  readonly key: string;
  /** Guests can neither see nor set it. */
  readonly isHidden: boolean;
  /** It must stand in the head itself: the gateway reads it there, or its route removes it. */
  readonly isInHead: boolean;
}

/** Fields that a guest adds to a request. */
export interface AddedFields {
  readonly list: readonly FieldEdit[];
  /** They may be written behind the head when that is sent: nobody else reads or removes them. */
  readonly mayFollowHead: boolean;
}

const NO_FIELDS: AddedFields = { list: [], mayFollowHead: true };
const RULES_MAX = 1_000;
/** Colon, space and CRLF. */
const LINE_BYTES = 4;

/** Splits the fields of requests of one route into those that guests see, and the others. */
export class RequestFields {
  readonly #hidden: ReadonlySet<string>;
  readonly #removed: ReadonlySet<string>;
  readonly #rules = new Map<string, NameRule>();

  /** `cutFields` are those that clients of the route may not set for its upstream. */
  constructor({ cutFields, headers }: Pick<RouteSpec, "cutFields" | "headers">) {
    this.#hidden = new Set([...OWN_FIELDS, ...cutFields].map(spell));
    this.#removed = new Set([...ID_FIELDS, ...(headers?.removeRequest ?? [])].map(spell));
  }

  /** The fields of a request. */
  open(exchange: GateExchange): OpenedFields {
    return new OpenedFields(exchange, this.#hidden);
  }

  /**
   * The fields to add to the request, if the guest has done nothing else than that: all others stay as the client sent them.
   * Undefined if it has read or removed fields, or set one that the request has.
   */
  listAdded({ seen }: OpenedFields, { head }: GateExchange): AddedFields | undefined {
    const { edits } = seen;
    if (edits === undefined) return undefined;
    if (edits.length === 0) return NO_FIELDS;
    let bytes = 0;
    let hidden = 0;
    let mayFollowHead = true;
    for (const { name, value, replaces } of edits) {
      const rule = this.#judge(name);
      if (rule.isHidden) {
        hidden++;
        continue;
      }
      if (replaces && hasField(head, rule.key)) return undefined;
      mayFollowHead &&= !rule.isInHead;
      bytes += name.length + value.length + LINE_BYTES;
    }
    const list = hidden === 0 ? edits : edits.filter(({ name }) => !this.#judge(name).isHidden);
    return { list, mayFollowHead: mayFollowHead && head.hasRoom(list.length, bytes) };
  }

  #judge(name: string): NameRule {
    const known = this.#rules.get(name);
    if (known !== undefined) return known;
    const spelled = spell(name);
    const bytes = Buffer.from(spelled, "latin1");
    const rule: NameRule = {
      key: name.toLowerCase(),
      isHidden: this.#hidden.has(spelled),
      isInHead:
        this.#removed.has(spelled) || findKnownField(bytes, 0, bytes.length) !== Known.Other,
    };
    if (this.#rules.size >= RULES_MAX) this.#rules.clear();
    this.#rules.set(name, rule);
    return rule;
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
