// The stored form of a push message.

/** Urgencies (RFC 8030 section 5.3). */
export const URGENCIES = ["very-low", "low", "normal", "high"] as const;

/** A push message. The browser's service worker receives `payload`. */
export interface PushContent {
  ttl_s: number;
  urgency: (typeof URGENCIES)[number];
  /** A later message with the same topic replaces one that was not delivered yet. */
  topic: string | undefined;
  payload: {
    message_id: string;
    title: string;
    body: string;
    url?: string | undefined;
    data: Readonly<Record<string, string>>;
  };
}
