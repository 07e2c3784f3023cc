// A server's side of HTTP guests for tests, and guests from their text form.
import { assemble } from "@platform/testing/guests";
import {
  type BodyPart,
  FieldList,
  type GuestEnvironment,
  type GuestMessages,
  HttpGuest,
  compileHttpModule,
} from "../../src/http/index.ts";

/** A request with its response; a test reads back what the guest has changed. */
export class TestMessages implements GuestMessages {
  method = "GET";
  uri = "/items?page=2";
  protocolVersion = "HTTP/1.1";
  sourceAddress = "192.0.2.1:4711";
  status = 200;
  requestFields = new FieldList([
    ["Host", "example.test"],
    ["X-One", "a"],
    ["x-one", "b"],
  ]);
  responseFields = new FieldList([["Content-Type", "text/plain"]]);
  /** The parts of the request body, in their order. */
  requestBody: (Uint8Array | Promise<Uint8Array>)[] = [Buffer.from("request body")];
  /** Numbers of bytes that the guest has asked for. */
  readonly asked: number[] = [];
  responseBody: Uint8Array = Buffer.from("response body");
  requestBodyBytesMax = 1_000;
  responseBodyBytesMax = 1_000;

  readRequestBody(bytesMin: number): BodyPart | Promise<BodyPart> {
    this.asked.push(bytesMin);
    const [part = new Uint8Array(0)] = this.requestBody.splice(0, 1);
    const isLast = this.requestBody.length === 0;
    if (part instanceof Promise) return part.then((bytes) => ({ bytes, isLast }));
    return { bytes: part, isLast };
  }

  readResponseBody(): Uint8Array {
    return this.responseBody;
  }
}

/** An environment whose log is kept. */
export class TestEnvironment implements GuestEnvironment {
  config: Uint8Array = Buffer.from("enabled=1\n");
  fuelPerCall = 5_000_000;
  readonly lines: [level: number, text: string][] = [];

  log(level: number, text: string): void {
    this.lines.push([level, text]);
  }

  isLogged(level: number): boolean {
    return level >= -1 && level < 3;
  }
}

/** An instance of a guest. */
export function createGuest(
  text: string | Uint8Array,
  environment: GuestEnvironment = new TestEnvironment(),
): HttpGuest {
  const bytes = typeof text === "string" ? assemble(text) : text;
  return new HttpGuest(compileHttpModule(bytes), environment);
}
