// Delivery receipts of the SMS gateway, which proves its identity by its own means.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import {
  createValidationError,
  defineRoute,
  RateLimit,
  type ApiRoute,
  type Peer,
  NO_BODY,
} from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type { SmsReceipts } from "../relay/sms/receipts.ts";

export interface SmsReceiptRoutesOptions {
  /** Undefined without a gateway. */
  receipts: SmsReceipts | undefined;
  /** URL of the service for others; undefined if it is not configured. */
  publicUrl: string | undefined;
  clock: Clock;
}

const PATH = "/api/v1/sms/receipts";
const BODY_BYTES_MAX = 16_384;
/** Refused receipts per minute and peer: more are a search for the secret. */
const REFUSED_PER_MINUTE = 60;

interface Incoming {
  method: string;
  headers: Headers;
  peer: Peer;
  request: Request;
}

export function createSmsReceiptRoutes({
  receipts,
  publicUrl,
  clock,
}: SmsReceiptRoutesOptions): ApiRoute[] {
  const refusedRate = new RateLimit({
    name: "refused-receipts",
    detail: "Too many refused receipts.",
    clock,
    ratePerSecond: REFUSED_PER_MINUTE / 60,
    capacity: REFUSED_PER_MINUTE,
  });
  const operation = {
    tag: "SMS",
    access: "public",
    path: PATH,
    status: 204,
    problems: {
      401: "The receipt is not authenticated (`sms.receipt_secret`, or the signature of the gateway)",
      404: "No message has this id yet, or there is no gateway",
    },
  } as const;
  const apply = async (incoming: Incoming, body: Uint8Array): Promise<void> => {
    if (receipts === undefined) throw new PlatformError("not_found", "There is no SMS gateway.");
    const { method, headers, peer } = incoming;
    const { search } = new URL(incoming.request.url);
    const url = publicUrl === undefined ? undefined : `${publicUrl}${PATH}${search}`;
    const effect = await receipts.apply({ method, url, query: search, headers, body });
    switch (effect) {
      case "applied":
        return;
      case "refused":
        refusedRate.take(peer.kind === "tcp" ? peer.address : "", 1);
        throw createUnauthorizedError("The receipt is not authenticated.");
      case "unknown":
        throw new PlatformError("not_found", "No message has this id.");
      case "invalid":
        throw createValidationError([
          { in: "body", path: "", message: "the receipt has no id and status" },
        ]);
      default:
        effect satisfies never;
    }
  };
  return [
    defineRoute({
      ...operation,
      method: "POST",
      summary: "Delivery receipt of the SMS gateway",
      description:
        "In the form of the preset; `json` is `{id, status}`. Authenticated by `sms.receipt_secret` as bearer token, as password of Basic authentication, or as key of the gateway's signed token; Twilio's by its signature.",
      bodyKind: "bytes",
      bodyBytesMax: BODY_BYTES_MAX,
      answer: NO_BODY,
      handle: (incoming) => apply(incoming, incoming.body),
    }),
    defineRoute({
      ...operation,
      method: "GET",
      summary: "Delivery receipt of gateways that send it in the query",
      answer: NO_BODY,
      handle: (incoming) => apply(incoming, new Uint8Array()),
    }),
  ];
}
