// Delivery: transports of each channel, and the dispatcher that feeds them from the queue.
import type { Service } from "@platform/chassis";
import type { NotifyConfig } from "../config.ts";
import { Inbox } from "../inbox/inbox.ts";
import { createWebPush, type WebPush } from "../push/web-push.ts";
import { Dispatcher } from "../queue/dispatcher.ts";
import { findSuppressed } from "../queue/suppressed.ts";
import { createSmsGateway } from "../relay/create-sms-gateway.ts";
import { createMailTransport, readRelays } from "../relay/create-transport.ts";
import { createPrepareMail, type PrepareMail } from "../relay/prepare.ts";
import { RelayGroup } from "../relay/relay-group.ts";
import type { SmsGateway } from "../relay/sms/sms-gateway.ts";
import type { Links } from "./links.ts";
import type { Outcomes } from "./outcomes.ts";
import type { Senders } from "./senders.ts";
import type { Storage } from "./storage.ts";

/** The parts. */
export interface Delivery {
  readonly inbox: Inbox;
  readonly prepare: PrepareMail;
  /** Undefined without a gateway: messages reach the development inbox. */
  readonly gateway: SmsGateway | undefined;
  readonly webPush: WebPush;
  readonly dispatcher: Dispatcher;
  /** Sends mail through the relay of this configuration from now on, if it leaves through relays. */
  readonly replaceRelay: (config: NotifyConfig) => void;
}

/** Time kept of the drain to give back what was not delivered. */
const RELEASE_MS = 2_000;

/** Creates the parts. The dispatcher is not started. */
export async function openDelivery(
  config: NotifyConfig,
  service: Service,
  { database, box }: Storage,
  { recorder, store, suppressions, fetchTarget: fetch }: Outcomes,
  { dns, domains, bounceAddresses }: Senders,
  { unsubscribes }: Links,
): Promise<Delivery> {
  const { tracer, clock, ids, log, lifecycle } = service;
  const fieldsOf: PrepareMailFields = (delivery) => unsubscribes.formatFields(delivery);
  const inbox = new Inbox({
    database,
    clock,
    messagesMax: config.inbox_messages_max,
    retentionMs: config.inbox_retention_ms,
    fieldsOf,
  });
  const prepare = createPrepareMail({
    sign: (content, domain) => domains.sign(content, domain),
    fieldsOf,
    senderOf: ({ message, position }) =>
      bounceAddresses?.format({ messageId: message.id, position }, clock.now()) ?? message.sender,
  });
  const relays = createMailTransport({ config, dns, prepare, clock });
  if (relays === undefined) log.warn("mail is not sent: it is kept in the development inbox");
  else lifecycle.onDrain("relays", () => relays.close());
  const gateway = createSmsGateway(config, tracer);
  const webPush = await createWebPush({ config, database, box, fetch, clock, ids, log });
  const dispatcher = new Dispatcher({
    store,
    transports: { email: relays ?? inbox, sms: gateway ?? inbox, push: webPush.delivery },
    findSuppressed: (deliveries) => findSuppressed(suppressions, deliveries),
    clock,
    log,
    random: Math.random,
    concurrencyMax: config["smtp.connections_max"],
    destinationConcurrencyMax: config["smtp.destination_connections_max"],
    ratePerSecond: config["smtp.destination_rate"],
    retryMs: config.retry_ms,
  });
  dispatcher.onResult((result) => recorder.observe(result));
  lifecycle.onDrain("queue", (drain) =>
    dispatcher.stop(Math.max(0, drain.remainingMs() - RELEASE_MS)),
  );
  const replaceRelay = (next: NotifyConfig): void => {
    if (relays instanceof RelayGroup) relays.replace(readRelays(next));
  };
  return { inbox, prepare, gateway, webPush, dispatcher, replaceRelay };
}

type PrepareMailFields = Parameters<typeof createPrepareMail>[0]["fieldsOf"];
