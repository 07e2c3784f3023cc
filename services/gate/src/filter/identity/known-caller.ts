// The user of a connection's last request: the same credentials need not be verified again for each request.
import { Known, type FieldBlock } from "@platform/http1";
import type { KnownCaller } from "../../exchange/caller.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { StepParts } from "../step-parts.ts";

/** Longer credentials are verified with each request: they would cost memory on every idle connection. */
const CREDENTIALS_BYTES_MAX = 4_096;

/**
 * The user of the connection's last request, if this one has the same credentials and nothing has changed since: step,
 * identity settings, revocations and policy are the same, in the same second. Credentials are compared in constant time,
 * because a connection may carry the requests of several users.
 */
export function findKnownCaller(
  { head, userData }: GateExchange,
  step: Step,
  { identity, access }: StepParts,
): KnownCaller["caller"] | undefined {
  const known = userData.knownCaller;
  if (known === null || known.step !== step) return undefined;
  if (known.identity !== identity.current || known.revision !== access.revision) return undefined;
  if (known.second !== currentSecond()) return undefined;
  return hasCredentials(head.fields, known.credentials) ? known.caller : undefined;
}

/** Remembers the verified user of a request for the next ones on the connection. */
export function rememberCaller(
  { head, userData }: GateExchange,
  step: Step,
  { identity, access }: StepParts,
  caller: KnownCaller["caller"],
): void {
  const credentials = readCredentials(head.fields);
  if (credentials === undefined) return;
  userData.knownCaller = {
    caller,
    credentials: Buffer.from(credentials),
    step,
    identity: identity.current,
    revision: access.revision,
    second: currentSecond(),
  };
}

/** The value of the only Authorization field, a view; undefined if there is none, or it is too long to be kept. */
function readCredentials(fields: FieldBlock): Uint8Array | undefined {
  const line = fields.first(Known.Authorization);
  if (line === -1 || fields.next(line) !== -1) return undefined;
  const start = fields.valueStart(line);
  const end = fields.valueEnd(line);
  return end - start > CREDENTIALS_BYTES_MAX ? undefined : fields.bytes.subarray(start, end);
}

/**
 * True if the only Authorization field has this value. Reads all of it whatever it contains, like `timingSafeEqual`,
 * whose call and view would take longer than the comparison.
 */
function hasCredentials(fields: FieldBlock, credentials: Uint8Array): boolean {
  const line = fields.first(Known.Authorization);
  if (line === -1 || fields.next(line) !== -1) return false;
  const { bytes } = fields;
  const start = fields.valueStart(line);
  if (fields.valueEnd(line) - start !== credentials.length) return false;
  let difference = 0;
  for (let at = 0; at < credentials.length; at++)
    difference |= bytes[start + at]! ^ credentials[at]!;
  return difference === 0;
}

function currentSecond(): number {
  return Math.floor(Date.now() / 1_000);
}
