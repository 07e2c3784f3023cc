// Delivery by HTTP, signed as Standard Webhooks specifies (https://www.standardwebhooks.com, "Signature scheme").
import { createHmac } from "node:crypto";
import { EgressError, type EgressFetch } from "@platform/kernel/egress";
import type { Sender, SendOutcome } from "./sender.ts";
import type { WebhookTarget } from "./target.ts";

const SECRET_PREFIX = "whsec_";
const USER_AGENT = "platform-vaultd/2";
/** `Retry-After` is honoured up to this limit. */
const RETRY_AFTER_SECONDS_MAX = 3_600;

/**
 * The secret that signs the requests to a webhook, derived from the service's master key: one receiver cannot sign for
 * another, and nothing needs to be stored.
 */
export function deriveWebhookSecret(masterKey: Uint8Array, bucket: string, url: string): string {
  const key = createHmac("sha256", masterKey).update(`webhook\0${bucket}\0${url}`).digest();
  return SECRET_PREFIX + key.toString("base64");
}

/** Posts events. Any 2xx answer is a delivery. Redirects are not followed. */
export function createWebhookSender(options: {
  target: WebhookTarget;
  /** See `deriveWebhookSecret`. */
  secret: string;
  fetch: EgressFetch;
  /** Milliseconds since 1970. */
  now: () => number;
}): Sender {
  const { target } = options;
  const key = Buffer.from(options.secret.slice(SECRET_PREFIX.length), "base64");
  return {
    send: async ({ id, body, trace }) => {
      const timestamp = String(Math.floor(options.now() / 1_000));
      const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`);
      try {
        const answer = await options.fetch(target.url, {
          method: "POST",
          headers: {
            ...trace,
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            "webhook-id": id,
            "webhook-timestamp": timestamp,
            "webhook-signature": `v1,${signature.digest("base64")}`,
          },
          body,
        });
        return judgeAnswer(answer);
      } catch (error) {
        const reason = error instanceof EgressError ? error.message : "the call failed";
        return { kind: "retry", blames: "target", reason };
      }
    },
    close: () => {},
  };
}

function judgeAnswer(answer: Response): SendOutcome {
  const { status } = answer;
  if (status >= 200 && status < 300) return { kind: "delivered", status };
  const reason = `answered with status ${status}`;
  // A 4xx answer refuses the content of this event; the next event may be accepted.
  const blames = status >= 400 && status < 500 && status !== 408 && status !== 429;
  const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return {
    kind: "retry",
    blames: blames ? "event" : "target",
    reason,
    status,
    ...(seconds >= 0 ? { afterMs: Math.min(seconds, RETRY_AFTER_SECONDS_MAX) * 1_000 } : {}),
  };
}
