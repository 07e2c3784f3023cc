// The mirroring step: a share of the requests is also sent to another service, which does not affect their responses.
import type { LookupFunction } from "node:net";
import { addRequestTap, type HeadWriter, type RequestTap } from "@platform/http1";
import type { GateExchange, HeadCopy, Step } from "../../exchange/exchange.ts";
import type { MirrorSpec, RouteSpec } from "../../shared-state/index.ts";
import { createCheckedLookup } from "../../upstream/checked-lookup.ts";
import type { MirroredHead, MirrorSender } from "./mirror-sender.ts";
import { readSentHead } from "../content/sent-head.ts";
import type { StepParts } from "../step-parts.ts";

/** Mirrors requests of a route. It must come after all steps that add to the head, which it copies. */
export function createMirrorStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { mirror } = spec.steps;
  return mirror === undefined
    ? undefined
    : new MirrorStep(mirror, parts.mirrors, spec.confined?.networks);
}

class MirrorStep implements Step {
  readonly #spec: MirrorSpec;
  readonly #origin: URL;
  readonly #sender: MirrorSender;
  readonly #lookup: LookupFunction | undefined;

  constructor(spec: MirrorSpec, sender: MirrorSender, networks: readonly string[] | undefined) {
    this.#spec = spec;
    this.#origin = new URL(spec.origin);
    this.#sender = sender;
    this.#lookup = networks === undefined ? undefined : createCheckedLookup(networks);
  }

  run(exchange: GateExchange): boolean {
    // An upgrade has no end that a mirror could wait for.
    if (exchange.head.upgrade || Math.random() * 100 >= this.#spec.percent) return true;
    const copy = new MirroredRequest(this.#origin, this.#spec, this.#sender, this.#lookup);
    exchange.userData.mirrored = copy;
    addRequestTap(exchange, copy);
    return true;
  }

  onRequestHead(exchange: GateExchange, writer: HeadWriter): void {
    exchange.userData.mirrored?.takeHead(writer.view());
  }
}

/** The copy of one request: sent when its head and its whole body are there. */
class MirroredRequest implements RequestTap, HeadCopy {
  readonly #origin: URL;
  readonly #bodyBytesMax: number;
  readonly #omitted: ReadonlySet<string>;
  readonly #sender: MirrorSender;
  readonly #lookup: LookupFunction | undefined;
  #head: MirroredHead | undefined;
  #body: Buffer[] = [];
  #bytes = 0;
  #isComplete = false;
  /** A place at the sender is taken. */
  #isOpen = false;
  #isOver = false;

  constructor(
    origin: URL,
    { bodyBytesMax, omittedFields = [] }: MirrorSpec,
    sender: MirrorSender,
    lookup: LookupFunction | undefined,
  ) {
    this.#origin = origin;
    this.#bodyBytesMax = bodyBytesMax;
    this.#omitted = new Set(omittedFields.map((name) => name.toLowerCase()));
    this.#sender = sender;
    this.#lookup = lookup;
  }

  /** Copies the head of the first attempt. */
  takeHead(bytes: Buffer): void {
    if (this.#isOver || this.#head !== undefined) return;
    const { method, target, fields } = readSentHead(bytes);
    const kept = fields.filter(([name]) => !this.#omitted.has(name.toLowerCase()));
    this.#head = { method, target, fields: kept.flat() };
    this.#sendWhenComplete();
  }

  onBytes(bytes: Buffer): void {
    if (!this.#enter()) return;
    const isAllowed = this.#bytes + bytes.length <= this.#bodyBytesMax;
    if (!isAllowed || !this.#sender.claim(this.#origin, bytes.length)) {
      this.#sender.skip();
      this.#drop();
      return;
    }
    this.#bytes += bytes.length;
    this.#body.push(Buffer.from(bytes));
  }

  onEnd(outcome: "complete" | "aborted"): void {
    if (outcome === "aborted") {
      this.#drop();
      return;
    }
    this.#isComplete = true;
    this.#sendWhenComplete();
  }

  #enter(): boolean {
    if (this.#isOver) return false;
    if (this.#isOpen) return true;
    this.#isOpen = this.#sender.enter(this.#origin);
    this.#isOver = !this.#isOpen;
    return this.#isOpen;
  }

  #sendWhenComplete(): void {
    if (!this.#isComplete || this.#head === undefined || !this.#enter()) return;
    this.#isOver = true;
    const head = this.#head;
    const body = this.#body;
    this.#body = [];
    // The upstream gets its request first.
    setImmediate(() => this.#sender.send(this.#origin, head, body, this.#bytes, this.#lookup));
  }

  #drop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body = [];
    if (this.#isOpen) this.#sender.leave(this.#origin, this.#bytes);
  }
}
