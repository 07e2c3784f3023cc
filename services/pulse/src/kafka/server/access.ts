// Authorization of requests: each handler with what it requires of the client's principal.
import type { Requirement } from "../../access/requirement.ts";
import { ALL_RIGHTS, type Right } from "../../topic/rights.ts";
import type { Principal } from "../../user/principal.ts";
import type { Access, Handler, RequestContext } from "./route.ts";
import { principalOf } from "./session.ts";

/** A handler that checks no right before it is called. With `any`, it checks the topics that the request names itself. */
export function allow<Q, Answered>(
  requires: Extract<Requirement, "public" | "caller" | "any">,
  handle: Handler<Q, Answered>,
): Access<Q, Answered> {
  return { requires, handle };
}

/**
 * Wraps a handler: clients without the right for any topic get the answer of `refuse` instead, which carries the error of
 * Kafka's own authorization. The handler checks the topics that the request names.
 */
export function requireRight<Q, Refused, Answered>(
  requires: Right | "operator",
  refuse: (request: Q, context: RequestContext) => Refused,
  handle: Handler<Q, Answered>,
): Access<Q, Refused | Answered> {
  const isMet =
    requires === "operator" ? isOperator : ({ rights }: Principal): boolean => rights.has(requires);
  return {
    requires,
    handle: (request, context) =>
      isMet(principalOf(context.session)) ? handle(request, context) : refuse(request, context),
  };
}

/** As over HTTP: the operator on behalf of a tenant is not meant. */
function isOperator({ tenant, rights }: Principal): boolean {
  return tenant === "" && rights === ALL_RIGHTS;
}
