// Messaging for browsers.
export {
  createPulseClient,
  type PendingMessage,
  type Publication,
  type PulseClient,
  type PulseClientEvents,
  type PulseClientOptions,
} from "./client.ts";
export { PulseClientError, type Problem } from "./errors.ts";
export type { OutgoingMessage, ReceivedMessage, SentMessage } from "./message.ts";
export type { QueueState } from "./queue/sender.ts";
export type { SubscribeOptions, Subscription } from "./stream/subscribe-options.ts";
