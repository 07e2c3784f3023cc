// One connection of an MQTT client: reads packets in order, writes packets, ends with the reason of the standard.
import { Pace, type OutgoingFault, type ReadTaker } from "@platform/kernel/sockets";
import type { WireConnection } from "../../connection/listeners.ts";
import type { Transport } from "../../connection/transport.ts";
import { ReadAhead } from "../../dispatch/read-ahead.ts";
import type { Rights } from "../../topic/rights.ts";
import { decodePacket, isVersion5 } from "../packet/decode.ts";
import {
  encodeConnack,
  encodeDisconnect,
  encodeSubscriptionAnswer,
  PINGRESP,
} from "../packet/encode.ts";
import { FrameReader, type Frame } from "../packet/frame-reader.ts";
import type { AcknowledgementPacket, ClientPacket, ConnectPacket } from "../packet/packets.ts";
import { MqttError, REASON, type Reason } from "../packet/reason-codes.ts";
import { toMqttError, type MessageSource } from "../publishing.ts";
import type { SessionConnection } from "../session/connection-port.ts";
import type { Session } from "../session/session.ts";
import {
  accept,
  describeAccepted,
  readFarewell,
  type Accepted,
  type Farewell,
} from "./connecting.ts";
import type { ConnectionContext } from "./connection-context.ts";
import { IncomingPublishes } from "./incoming-publishes.ts";
import { PacketOutput } from "./packet-output.ts";
import { RetainedQueue, subscribe, unsubscribe } from "./subscribing.ts";

/** Unprocessed bytes at which reading pauses. */
const READ_AHEAD_BYTES = 64 * 1024;
/** Packets up to this size do not count against the budget of large packets. */
const SMALL_PACKET_BYTES = 64 * 1024;
const PACE = { bytesMin: 7_680, windowMs: 30_000 };

/** Serves a transport until either side closes it. */
export class Connection extends PacketOutput implements SessionConnection, WireConnection {
  readonly readAhead: ReadAhead;
  rights!: Rights;
  session!: Session;
  isBridge = false;
  source!: MessageSource;
  readonly #context: ConnectionContext;
  readonly #frames: FrameReader;
  #phase: "new" | "connecting" | "open" | "closed" = "new";
  #incoming: IncomingPublishes | undefined;
  #retained: RetainedQueue | undefined;
  #isConnectSeen = false;
  #isReading = false;
  /** True while a packet is handled that must be finished before the next one. */
  #isBusy = false;
  #isPaused = false;
  #reservedBytes = 0;
  #gone: AbortController | undefined;
  #pace: Pace | undefined;
  readonly #sinceMs: number;
  #lastReadMs: number;
  #keepAliveMs = 0;
  #endsAtMs = Number.POSITIVE_INFINITY;
  #mayKeepSession = false;
  /** Set when a DISCONNECT has arrived. */
  #farewell: Farewell | undefined;
  #releaseUser: (() => void) | undefined;
  #clientId = "";
  #forgetToken: (() => void) | undefined;

  constructor(transport: Transport, context: ConnectionContext) {
    super(transport, context);
    this.#context = context;
    this.readAhead = new ReadAhead(transport.outflow);
    this.#frames = new FrameReader(context.limits.packetBytesMax);
    this.#sinceMs = context.clock.monotonicMs();
    this.#lastReadMs = this.#sinceMs;
  }

  /** Takes received bytes. */
  readonly onRead: ReadTaker = (bytes, length, isShared) => {
    if (this.#phase === "closed") return;
    this.#lastReadMs = this.#context.clock.monotonicMs();
    this.#frames.push(isShared ? Buffer.from(bytes.subarray(0, length)) : bytes);
    this.#read();
  };

  /** The client has read what was sent. */
  onDrain(): void {
    this.transport.outflow?.settle();
    if (this.#phase !== "open") return;
    this.session.pump();
    this.#read();
  }

  /** The transport has closed. What has arrived still takes effect, also a DISCONNECT. */
  onClose(): void {
    this.isGone = true;
    if (this.#phase === "open") this.#read();
    else this.#close(true);
  }

  /** MQTT-6.0.0-1. */
  onTextFrame(): void {
    this.end(REASON.protocolError, "MQTT uses binary frames");
  }

  drop(fault: OutgoingFault): void {
    this.#report("slow", fault);
    this.#close(true);
    this.transport.destroy();
  }

  endIfForbidden(): void {
    if (this.#phase === "open" && !this.session.isAllowed) {
      this.end(REASON.notAuthorized, "the right to subscribe was withdrawn");
    }
  }

  shutDown(): void {
    this.end(REASON.serverShuttingDown, "the broker is stopping");
  }

  /** Checks times: of CONNECT, keep-alive, the client's token, large packets. */
  sweep(_nowMs: number, elapsedMs: number): void {
    const nowMs = this.#context.clock.monotonicMs();
    if (this.#phase === "new") {
      if (nowMs - this.#sinceMs < this.#context.limits.connectTimeoutMs) return;
      this.#report("no-connect", "no CONNECT has arrived");
      this.#close(false);
      this.transport.destroy();
      return;
    }
    if (this.#phase !== "open") return;
    this.transport.outflow?.settle();
    if (this.#context.clock.now() >= this.#endsAtMs) {
      this.end(REASON.maximumConnectTime, "the token has ended");
    } else if (
      this.#keepAliveMs > 0 &&
      !this.#isPaused &&
      nowMs - this.#lastReadMs > this.#keepAliveMs
    ) {
      this.end(REASON.keepAliveTimeout, "nothing has arrived for one and a half keep-alives");
    } else if (this.#isTooSlow(elapsedMs)) {
      this.end(REASON.protocolError, "a packet does not arrive");
    }
  }

  resumeReading(): void {
    if (this.#phase === "open") this.#read();
  }

  /** Ends the connection because of an error. */
  fail(error: unknown): void {
    const { reason, message } = toMqttError(error);
    if (!(error instanceof MqttError)) this.#report("internal", "a packet failed", error);
    this.end(reason, message);
  }

  end(reason: Reason, detail: string): void {
    if (this.#phase === "closed") return;
    const isOrderly = reason === REASON.serverShuttingDown || reason === REASON.sessionTakenOver;
    if (!isOrderly) this.#report(`0x${reason.toString(16)}`, detail);
    if (this.#phase !== "open") {
      // MQTT 3.1.1 has no code for a malformed CONNECT, and others than clients of MQTT are told nothing.
      const isMalformed = reason === REASON.protocolError || reason === REASON.malformed;
      if (this.#isConnectSeen && (!isMalformed || this.version === 5)) {
        this.write(encodeConnack(this.version, reason, false, this.explainEnd(detail)));
      }
    } else if (this.version === 5) this.write(encodeDisconnect(reason, this.explainEnd(detail)));
    this.flush();
    this.#close(true);
    this.transport.end();
  }

  #read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#phase !== "closed" && this.#mayRead()) {
        const frame = this.#nextFrame();
        if (frame === undefined) break;
        this.#handleFrame(frame);
      }
    } catch (error) {
      this.fail(error);
    }
    this.#isReading = false;
    if (this.isGone && this.#mayRead()) this.#close(true);
    if (this.#phase !== "closed") this.#pauseOrResume();
  }

  #mayRead(): boolean {
    if (this.#isBusy || this.#phase === "connecting") return false;
    return this.#incoming?.isFull !== true && (this.isGone || this.canSend());
  }

  #pauseOrResume(): void {
    const isPaused = this.#frames.bytes > READ_AHEAD_BYTES && !this.#mayRead();
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.transport.pause();
    else {
      this.#lastReadMs = this.#context.clock.monotonicMs();
      this.transport.resume();
    }
  }

  #nextFrame(): Frame | undefined {
    const size = this.#frames.measure();
    if (size === undefined) return undefined;
    if (size > SMALL_PACKET_BYTES && this.#reservedBytes === 0) {
      this.#hold(this.#reserve(size));
      return undefined;
    }
    return this.#frames.next();
  }

  async #reserve(size: number): Promise<void> {
    this.#gone ??= new AbortController();
    if (!(await this.#context.packetBudget.take(size, this.#gone.signal))) return;
    this.#reservedBytes = size;
    this.#pace = new Pace();
    this.#pace.restart(this.transport.receivedBytes);
  }

  #releaseBytes(): void {
    if (this.#reservedBytes === 0) return;
    this.#context.packetBudget.release(this.#reservedBytes);
    this.#reservedBytes = 0;
    this.#pace = undefined;
  }

  #isTooSlow(elapsedMs: number): boolean {
    return this.#pace?.isTooSlow(PACE, elapsedMs, this.transport.receivedBytes) === true;
  }

  #handleFrame({ firstByte, body }: Frame): void {
    this.#releaseBytes();
    // The first packet is a CONNECT: a refusal has the form of its version.
    if (this.#phase === "new") {
      this.#isConnectSeen = true;
      this.version = isVersion5(body) ? 5 : 4;
    }
    const packet = decodePacket(firstByte, body, this.version);
    this.#context.onPacket(packet.type);
    if (this.#phase === "new") {
      if (packet.type !== "connect") throw new MqttError(REASON.protocolError, "CONNECT is first");
      this.#hold(this.#connect(packet));
      return;
    }
    this.#handle(packet);
  }

  #handle(packet: ClientPacket): void {
    switch (packet.type) {
      case "publish":
        this.#incoming!.handle(packet);
        return;
      case "puback":
      case "pubrec":
      case "pubrel":
      case "pubcomp":
        this.#handleAcknowledgement(packet);
        return;
      case "pingreq":
        this.write(PINGRESP);
        return;
      case "subscribe":
        this.#holdInOrder(() => this.#subscribe(packet));
        return;
      case "unsubscribe":
        this.#holdInOrder(() => this.#unsubscribe(packet));
        return;
      case "disconnect":
        this.#farewell = readFarewell(packet, this.#mayKeepSession, this.#context.limits);
        this.#holdInOrder(() => this.#leave());
        return;
      case "connect":
        throw new MqttError(REASON.protocolError, "a second CONNECT");
      case "auth":
        throw new MqttError(REASON.protocolError, "no authentication method is in use");
      default:
        packet satisfies never;
    }
  }

  #handleAcknowledgement({ type, id, reason }: AcknowledgementPacket): void {
    const { session } = this;
    if (type === "puback") session.deliveries.complete(id, 1, "publish");
    else if (type === "pubcomp") session.deliveries.complete(id, 2, "release");
    else if (type === "pubrel" && this.#incoming!.isUnsettled(id)) {
      this.#holdInOrder(() => this.#incoming!.release(id));
    } else if (type === "pubrel") this.#watch(this.#incoming!.release(id));
    else if (reason >= 0x80) session.deliveries.complete(id, 2, "publish");
    else this.#watch(session.deliveries.release(id));
  }

  /** The next packets are read meanwhile. */
  #watch(work: Promise<void>): void {
    work.catch((error: unknown) => this.fail(error));
  }

  /** Reads no further packet until the work is done. */
  #hold(work: Promise<void>): void {
    this.#isBusy = true;
    work
      .catch((error: unknown) => this.fail(error))
      .finally(() => {
        this.#isBusy = false;
        if (this.#phase !== "closed") this.#read();
      });
  }

  /** Like `#hold`, when the messages that have arrived before are stored. */
  #holdInOrder(work: () => Promise<void> | void): void {
    this.#hold(this.#incoming!.settled().then(() => (this.#phase === "open" ? work() : undefined)));
  }

  async #connect(packet: ConnectPacket): Promise<void> {
    this.#phase = "connecting";
    this.version = packet.version;
    this.isBridge = packet.isBridge;
    this.#clientId = packet.clientId;
    this.applyProperties(packet.properties, this.#context.limits);
    const accepted = await accept(this.#context, this.transport, packet);
    if (this.isClosed) return;
    this.#admit(accepted);
    const { session, isPresent } = await this.#context.sessions.open(accepted.request, this);
    if (this.isClosed) {
      this.#context.sessions.close(session, this, { withWill: true });
      return;
    }
    this.session = session;
    this.transport.describeClient = () => describeAccepted(accepted, session);
    this.source = { tenant: session.identity.tenant, rights: this.rights, origin: session.origin };
    this.#incoming = new IncomingPublishes(this, this.#context);
    this.#phase = "open";
    this.#mayKeepSession = packet.version === 4 || accepted.request.expirySeconds > 0;
    this.write(encodeConnack(this.version, REASON.success, isPresent, accepted.properties));
    this.#watch(session.start(this));
  }

  #admit({ principal, keepAliveSeconds, request }: Accepted): void {
    this.#releaseUser = this.#context.users.admit(principal);
    if (this.#releaseUser === undefined) {
      throw new MqttError(REASON.quotaExceeded, "the user has too many connections");
    }
    this.#clientId = request.identity.clientId;
    this.rights = principal.rights;
    this.#keepAliveMs = keepAliveSeconds * 1_500;
    this.#endsAtMs = principal.expiresAtMs ?? Number.POSITIVE_INFINITY;
    if (principal.token === undefined) return;
    this.#forgetToken = this.#context.followToken(principal.token, () =>
      this.end(REASON.notAuthorized, "the token was revoked"),
    );
  }

  async #subscribe(packet: ClientPacket & { type: "subscribe" }): Promise<void> {
    const { session } = this;
    const { codes, detail, retained } = await subscribe(session, this, packet);
    this.writeExplained(
      (given) => encodeSubscriptionAnswer(this.version, "suback", packet.id, codes, given),
      detail,
    );
    if (retained.length === 0) return;
    this.#retained ??= new RetainedQueue(session, this);
    this.#watch(this.#retained.add(retained));
  }

  async #unsubscribe(packet: ClientPacket & { type: "unsubscribe" }): Promise<void> {
    const codes = await unsubscribe(this.session, packet);
    this.write(encodeSubscriptionAnswer(this.version, "unsuback", packet.id, codes));
  }

  #leave(): void {
    this.flush();
    this.#close(false);
    this.transport.end();
  }

  /** `withWill`: unless the client has said otherwise in its DISCONNECT. */
  #close(withWill: boolean): void {
    if (this.#phase === "closed") return;
    const wasOpen = this.#phase === "open";
    this.#phase = "closed";
    this.isClosed = true;
    this.#forgetToken?.();
    this.#gone?.abort();
    this.#releaseBytes();
    this.#releaseUser?.();
    if (wasOpen) {
      const farewell = this.#farewell ?? { withWill, expirySeconds: undefined };
      this.#context.sessions.close(this.session, this, farewell);
    }
  }

  #report(kind: string, reason: string, error?: unknown): void {
    const { remoteAddress } = this.transport;
    this.#context.onFault({ kind, remoteAddress, clientId: this.#clientId, reason, error });
  }
}
