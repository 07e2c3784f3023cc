// Authorization of requests by the rights of the client's principal.
import type { Right } from "../../topic/rights.ts";
import type { Handler, RequestContext } from "./route.ts";
import { principalOf } from "./session.ts";

/**
 * Wraps a handler: clients without the right get the answer of `refuse` instead, which carries the error of Kafka's own
 * authorization.
 */
export function requireRight<Q, Refused, Answered>(
  right: Right,
  refuse: (request: Q, context: RequestContext) => Refused,
  handle: Handler<Q, Answered>,
): Handler<Q, Refused | Answered> {
  return (request, context) =>
    principalOf(context.session).rights.has(right)
      ? handle(request, context)
      : refuse(request, context);
}
