// Removes fields from a request that describe a body which the gateway has changed.
import { nameOfMethod } from "@platform/http1";
import type { GateExchange } from "../../exchange/exchange.ts";

/** Removes the fields with these names, in lower case, from the head. */
export function dropFields(exchange: GateExchange, names: readonly string[]): void {
  const { head } = exchange;
  const { fields, bytes } = head;
  const kept: [string, string][] = [];
  for (let index = 0; index < fields.count; index++) {
    const name = fields.name(index);
    if (!names.includes(name.toLowerCase())) kept.push([name, fields.value(index)]);
  }
  exchange.replaceHead({
    method: nameOfMethod(head.methodId) ?? "POST",
    target: bytes.toString("latin1", head.targetStart, head.targetEnd),
    fields: kept,
  });
}
