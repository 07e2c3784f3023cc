// `node bench/gate/guest-calls.ts`: processor time of calls of guests in one process, for the table of costs.md.
import { readFileSync } from "node:fs";
import { assemble, type GuestText, writeGuest } from "@platform/testing/guests";
import {
  type BodyPart,
  FieldList,
  type GuestMessages,
  type GuestVerdict,
  HttpGuest,
  compileHttpModule,
} from "@platform/wasm/http";

const ROUNDS = 7;
const SAMPLES = new URL("../../examples/middleware/", import.meta.url);
const BODY = Buffer.from(`{"card":"4111111111111111","text":"${"lorem ipsum 123 ".repeat(640)}"}`);

const REQUEST_FIELDS: [name: string, value: string][] = [
  ["Host", "a"],
  ["X-One", "1"],
  ["X-Hub-Signature-256", `sha256=${"0".repeat(64)}`],
];

const FIELD: GuestText = {
  data: { 0: "x-one", 16: "x-two", 32: "value" },
  request: `
    (drop (call $get_header_values (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 256) (i32.const 64)))
    (call $set_header_value (i32.const 0) (i32.const 16) (i32.const 5) (i32.const 32) (i32.const 5))
    (i64.const 1)`,
};
const read = (name: string): Buffer => readFileSync(new URL(name, SAMPLES));

/** Modules with the number of calls in a round. */
const guests: [name: string, module: Uint8Array, calls: number][] = [
  ["no-op", assemble(writeGuest()), 300_000],
  ["one field read, one set", assemble(writeGuest(FIELD)), 200_000],
  ["header-rules.wasm, one rule", read("header-rules.wasm"), 50_000],
  ["redact.wasm, 10 KB read and rewritten", read("redact.wasm"), 5_000],
  ["webhook.wasm, 10 KB read and hashed", read("webhook.wasm"), 2_000],
];

/** A request whose fields are read when the guest asks for them, as at the gateway. */
class Messages implements GuestMessages {
  method = "POST";
  uri = "/a";
  readonly protocolVersion = "HTTP/1.1";
  readonly sourceAddress = "";
  status = 200;
  readonly requestBodyBytesMax = 1_000_000;
  readonly responseBodyBytesMax = 1_000_000;
  #requestFields: FieldList | undefined;
  #responseFields: FieldList | undefined;

  get requestFields(): FieldList {
    return (this.#requestFields ??= new FieldList(REQUEST_FIELDS));
  }

  get responseFields(): FieldList {
    return (this.#responseFields ??= new FieldList([["Content-Type", "application/json"]]));
  }

  readRequestBody(): BodyPart {
    return { bytes: BODY, isLast: true };
  }

  readResponseBody(): Buffer {
    return BODY;
  }
}

/** One request and its response. Only a module that reads bodies returns promises. */
function pass(guest: HttpGuest): Promise<void> | undefined {
  const messages = new Messages();
  const verdict = guest.handleRequest(messages);
  if (verdict instanceof Promise) return passLater(guest, messages, verdict);
  if (verdict.next) void guest.handleResponse(messages, verdict.context, false);
  guest.endRequest();
  return undefined;
}

async function passLater(
  guest: HttpGuest,
  messages: GuestMessages,
  verdict: Promise<GuestVerdict>,
): Promise<void> {
  const { next, context } = await verdict;
  if (next) await guest.handleResponse(messages, context, false);
  guest.endRequest();
}

for (const [name, module, calls] of guests) {
  const guest = new HttpGuest(compileHttpModule(module), {
    config: Buffer.from("request set X-Two value"),
    fuelPerCall: 5_000_000,
    log: () => undefined,
    isLogged: () => false,
  });
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage().user;
    for (let call = 0; call < calls; call++) {
      const later = pass(guest);
      if (later !== undefined) await later;
    }
    times.push((process.cpuUsage().user - before) / calls);
  }
  console.log(`${name}: ${Math.min(...times).toFixed(2)} µs`);
}
