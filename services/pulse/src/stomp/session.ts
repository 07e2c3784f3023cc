// The frames of an authenticated client.
import { describeClient, type ConnectedClient } from "../connection/listed-connection.ts";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { ByteQuota } from "../tenant/byte-quota.ts";
import type { PublishInput } from "../publish/publish-input.ts";
import type { Publisher } from "../publish/publisher.ts";
import { toPublishError } from "../publish/publish-error.ts";
import type { Principal } from "../user/principal.ts";
import { isCommand } from "./commands.ts";
import { ClientSubscription, type SubscriberConnection } from "./client-subscription.ts";
import { parseDestination } from "./destination.ts";
import type { Frame } from "./frame/frame.ts";
import { StompError, type StompErrorKind } from "./frame/stomp-error.ts";
import { requireHeader } from "./header-values.ts";
import { toPublishInput } from "./message-form.ts";
import { deleteDurable, openSubscription, type SubscriptionParts } from "./open-subscription.ts";
import { readDurableName, readSubscribeRequest, toDurableGroup } from "./subscribe-request.ts";
import { Transactions, type TransactionBytes } from "./transactions.ts";

/** Subscriptions of a connection. */
const SUBSCRIPTIONS_MAX = 1_000;
/** Frames that are handled as a batch: see `Session.handleBatch`. */
const BATCHED: ReadonlySet<string> = new Set(["SEND", "ACK", "NACK"]);

/** The parts of the broker that sessions use. */
export interface SessionParts extends SubscriptionParts {
  publisher: Publisher;
  clock: Clock;
  quota: ByteQuota;
  transactionBytes: TransactionBytes;
  /** Subscriptions of all connections. */
  subscriptionCount: { current: number; readonly max: number };
  counts: { published: number };
}

/** The connection of a session. */
export interface SessionConnection extends SubscriberConnection {
  sendReceipt(id: string): void;
  /** Reads nothing and sends nothing until the time is over. */
  pause(ms: number): Promise<void>;
  /** Closes after everything written was sent. */
  disconnect(): void;
}

/** An error of one of several frames. */
export class FrameFault extends Error {
  readonly frame: Frame;

  constructor(frame: Frame, cause: unknown) {
    super("a frame failed", { cause });
    this.frame = frame;
  }
}

interface Batch {
  messages: { frame: Frame; input: PublishInput }[];
  acknowledgements: { frame: Frame; apply: () => void }[];
  receipts: string[];
}

/** True if a frame may be handled together with the previous ones. */
export function isBatched({ command }: Frame): boolean {
  return BATCHED.has(command);
}

/** A session of a client: subscriptions, transactions. */
export class Session {
  readonly #connection: SessionConnection;
  readonly #parts: SessionParts;
  readonly #principal: Principal;
  readonly #clientId: string | undefined;
  readonly #subscriptions = new Map<string, ClientSubscription>();
  readonly #transactions: Transactions;
  /** Subscriptions send in turn, so that one with a backlog does not hold back the others. */
  #turn = 0;
  #isClosed = false;

  constructor(
    connection: SessionConnection,
    parts: SessionParts,
    principal: Principal,
    clientId: string | undefined,
  ) {
    this.#connection = connection;
    this.#parts = parts;
    this.#principal = principal;
    this.#clientId = clientId;
    this.#transactions = new Transactions(parts.transactionBytes);
  }

  get hasSubscriptions(): boolean {
    return this.#subscriptions.size > 0;
  }

  describeClient(): ConnectedClient {
    const names = this.#subscriptions.values().map(({ request }) => request.destination.name);
    return describeClient(this.#principal, this.#clientId, names, this.#subscriptions.size);
  }

  /** False if the client has lost the right for a topic that it follows. */
  get isAllowed(): boolean {
    const { rights } = this.#principal;
    return this.#subscriptions.values().every((subscription) => subscription.isAllowed(rights));
  }

  /** Sends waiting messages of all subscriptions while the connection accepts them. */
  pump(): void {
    const subscriptions = Array.from(this.#subscriptions.values());
    for (let step = 0; step < subscriptions.length; step++) {
      if (!this.#connection.canSend()) return;
      this.#turn = (this.#turn + 1) % subscriptions.length;
      subscriptions[this.#turn]!.pump();
    }
  }

  /**
   * Handles a run of SEND, ACK and NACK frames: the messages are published as one entry, then the acknowledgements apply,
   * then receipts are sent. An acknowledgement never comes into effect before the messages that were sent before it.
   * If a frame fails, those before it have been handled. Throws a `FrameFault`.
   */
  async handleBatch(frames: readonly Frame[]): Promise<void> {
    const batch: Batch = { messages: [], acknowledgements: [], receipts: [] };
    let fault: FrameFault | undefined;
    for (const frame of frames) {
      try {
        this.#addToBatch(batch, frame);
      } catch (error) {
        fault = new FrameFault(frame, error);
        break;
      }
    }
    await this.#publishBatch(batch);
    for (const { apply } of batch.acknowledgements) apply();
    const isAwaited = batch.acknowledgements.some(({ frame }) => frame.headers.has("receipt"));
    if (isAwaited) await this.#parts.groups.save();
    for (const id of batch.receipts) this.#connection.sendReceipt(id);
    if (fault !== undefined) throw fault;
  }

  /** Handles any other frame. Throws a `FrameFault`. */
  async handle(frame: Frame): Promise<void> {
    try {
      if (frame.body.length > 0 && this.#connection.version !== "1.0") {
        throw new StompError("invalid", `${frame.command} has no body`);
      }
      await this.#handleCommand(frame);
    } catch (error) {
      throw new FrameFault(frame, error);
    }
    const receipt = frame.headers.get("receipt");
    if (receipt !== undefined) this.#connection.sendReceipt(receipt);
    if (frame.command === "DISCONNECT") this.#connection.disconnect();
  }

  /** The connection has closed: aborts transactions; messages without acknowledgement are delivered again. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#transactions.close();
    for (const key of Array.from(this.#subscriptions.keys())) this.#remove(key);
  }

  async #handleCommand(frame: Frame): Promise<void> {
    const { command } = frame;
    if (!isCommand(command)) {
      const shown = JSON.stringify(command.slice(0, 40));
      throw new StompError("invalid", `unknown command ${shown}`);
    }
    switch (command) {
      case "SUBSCRIBE":
        return this.#subscribe(frame);
      case "UNSUBSCRIBE":
        return this.#unsubscribe(frame);
      case "BEGIN":
        this.#transactions.begin(requireHeader(frame, "transaction"));
        return undefined;
      case "COMMIT":
        return this.#commit(frame);
      case "ABORT":
        this.#transactions.take(requireHeader(frame, "transaction"));
        return undefined;
      case "DISCONNECT":
        return undefined;
      case "CONNECT":
      case "STOMP":
        throw new StompError("invalid", "the client is connected already");
      case "SEND":
      case "ACK":
      case "NACK":
        throw new Error(`${command} is part of a batch`);
      default:
        return command satisfies never;
    }
  }

  #addToBatch(batch: Batch, frame: Frame): void {
    const { command, headers } = frame;
    const transaction = headers.get("transaction");
    if (command === "SEND") {
      const input = this.#readMessage(frame);
      if (transaction === undefined) batch.messages.push({ frame, input });
      else this.#transactions.addMessage(transaction, input);
    } else {
      const apply = this.#readAcknowledgement(frame);
      if (transaction === undefined) batch.acknowledgements.push({ frame, apply });
      else this.#transactions.addAcknowledgement(transaction, apply);
    }
    const receipt = headers.get("receipt");
    if (receipt !== undefined) batch.receipts.push(receipt);
  }

  #readMessage(frame: Frame): PublishInput {
    const { name } = parseDestination(requireHeader(frame, "destination"));
    this.#requirePublish(name);
    return toPublishInput(frame, name, this.#parts.clock.now());
  }

  #requirePublish(topic: string): void {
    if (this.#principal.rights.covers("publish", topic)) return;
    throw new StompError("forbidden", `publishing to ${topic} is not allowed`);
  }

  async #publishBatch(batch: Batch): Promise<void> {
    const { messages } = batch;
    if (messages.length === 0) return;
    try {
      await this.#publish(messages.map(({ input }) => input));
    } catch (error) {
      const at = toPublishError(error).fields["index"];
      const index = typeof at === "number" ? at : 0;
      // Nothing was stored. The messages before the one that failed are valid.
      if (index > 0) await this.#publish(messages.slice(0, index).map(({ input }) => input));
      const { frame } = messages[index]!;
      const before = messages.slice(0, index);
      for (const { frame: earlier } of before) {
        const receipt = earlier.headers.get("receipt");
        if (receipt !== undefined) this.#connection.sendReceipt(receipt);
      }
      throw new FrameFault(frame, error);
    }
  }

  async #publish(inputs: readonly PublishInput[]): Promise<void> {
    const { publisher, quota, counts } = this.#parts;
    const { tenant } = this.#principal;
    await publisher.publish(tenant, inputs, { isRated: false });
    counts.published += inputs.length;
    const bytes = inputs.reduce((sum, { payload }) => sum + payload.length, 0);
    const pauseMs = quota.charge(tenant, bytes);
    if (pauseMs > 0) await this.#connection.pause(pauseMs);
  }

  async #commit(frame: Frame): Promise<void> {
    const { messages, acknowledgements } = this.#transactions.take(
      requireHeader(frame, "transaction"),
    );
    // The topic rules may have changed since SEND.
    for (const { topic } of messages) this.#requirePublish(topic);
    if (messages.length > 0) await this.#publish(messages);
    for (const apply of acknowledgements) apply();
    const isAwaited = acknowledgements.length > 0 && frame.headers.has("receipt");
    if (isAwaited) await this.#parts.groups.save();
  }

  /** Checks an ACK or NACK; returns what applies it. */
  #readAcknowledgement(frame: Frame): () => void {
    const isAck = frame.command === "ACK";
    if (!isAck && this.#connection.version === "1.0") {
      throw new StompError("invalid", "STOMP 1.0 has no NACK");
    }
    const { subscription, key } = this.#findHeld(frame);
    return () => {
      for (const { source, place } of subscription.settle(key)) {
        const { group, member } = source;
        if (isAck) group.acknowledge(place, member);
        else group.giveBack(place, member);
      }
      // A window over several topics may have opened.
      subscription.pump();
    };
  }

  #findHeld(frame: Frame): { subscription: ClientSubscription; key: string } {
    const { version } = this.#connection;
    const isNewest = version === "1.2";
    const key = requireHeader(frame, isNewest ? "id" : "message-id");
    const named =
      version === "1.1" ? requireHeader(frame, "subscription") : frame.headers.get("subscription");
    if (!isNewest && named !== undefined) {
      const subscription = this.#subscriptions.get(named);
      if (subscription?.holds(key) === true) return { subscription, key };
    } else {
      for (const subscription of this.#subscriptions.values()) {
        if (subscription.holds(key)) return { subscription, key };
      }
    }
    const which = isNewest ? "ack" : "message-id";
    throw new StompError(
      "invalid",
      `${frame.command}: no message with the ${which} ${key.slice(0, 100)} waits`,
    );
  }

  async #subscribe(frame: Frame): Promise<void> {
    const request = readSubscribeRequest(frame, this.#connection.version, this.#clientId);
    if (this.#subscriptions.has(request.key)) {
      throw new StompError("invalid", `the subscription ${request.key} exists already`);
    }
    const { subscriptionCount } = this.#parts;
    if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) {
      throw new StompError(
        "refused",
        `a connection has ${SUBSCRIPTIONS_MAX} subscriptions at most`,
      );
    }
    if (subscriptionCount.current >= subscriptionCount.max) {
      throw new StompError("refused", "the limit of subscriptions is reached");
    }
    const subscription = new ClientSubscription(request, this.#connection);
    this.#subscriptions.set(request.key, subscription);
    subscriptionCount.current++;
    await openSubscription(this.#parts, this.#principal, subscription);
    // The topic rules may have changed meanwhile.
    if (subscription.isAllowed(this.#principal.rights)) return;
    throw new StompError("forbidden", "the right to subscribe was withdrawn");
  }

  async #unsubscribe(frame: Frame): Promise<void> {
    const { headers } = frame;
    const { version } = this.#connection;
    const id = version === "1.0" ? headers.get("id") : requireHeader(frame, "id");
    const key = id ?? requireHeader(frame, "destination");
    const name = readDurableName(frame, id);
    const request = this.#subscriptions.get(key)?.request;
    if (request === undefined && name === undefined) {
      throw new StompError("invalid", `the subscription ${key.slice(0, 100)} does not exist`);
    }
    this.#remove(key);
    if (name === undefined) return;
    const topic = request?.destination ?? parseDestination(requireHeader(frame, "destination"));
    const group = toDurableGroup(this.#clientId, name);
    await deleteDurable(this.#parts, this.#principal, topic.name, group);
  }

  #remove(key: string): void {
    const subscription = this.#subscriptions.get(key);
    if (subscription === undefined) return;
    this.#subscriptions.delete(key);
    this.#parts.subscriptionCount.current--;
    subscription.close();
  }
}

/** The error of a broker's part for the client; unknown errors keep no detail. */
export function toStompError(error: unknown): StompError {
  if (error instanceof StompError) return error;
  if (!(error instanceof PlatformError)) {
    return new StompError("internal", "an unexpected error occurred", { cause: error });
  }
  const retryAfter = error.headers["Retry-After"];
  const headers = {
    code: error.code,
    ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
  };
  return new StompError(toKind(error), error.detail, { headers, cause: error });
}

function toKind({ code }: PlatformError): StompErrorKind {
  switch (code) {
    case "forbidden":
      return "forbidden";
    case "payload_too_large":
      return "too-large";
    case "internal":
      return "internal";
    case "validation_failed":
    case "bad_request":
    case "not_found":
      return "invalid";
    default:
      return "refused";
  }
}
