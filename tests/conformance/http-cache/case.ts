// A scene for a case: the gateway in front of an upstream that plays scripted responses.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type Server,
  createServer,
  request,
} from "node:http";
import type { AddressInfo } from "node:net";
import { waitFor } from "@platform/testing/wait";

/** A response of the upstream. `age` seconds are subtracted from its Date. */
export interface Scripted {
  status?: number;
  headers?: OutgoingHttpHeaders;
  body?: string;
  /** Its Date lies this many seconds in the past. */
  ageSeconds?: number;
  /** Destroys the connection instead. */
  breaks?: boolean;
}

/** A response of the gateway. */
export interface Answered {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A request that the upstream received. */
export interface Received {
  method: string;
  headers: IncomingHttpHeaders;
}

/** A rule of RFC 9111 (or of the extension named) with its case. */
export interface Case {
  /** Section and number within this suite. */
  rule: string;
  title: string;
  run(scene: Scene): Promise<void>;
}

/** An upstream whose responses are scripted by path. */
export class ScriptedUpstream {
  readonly #scripts = new Map<string, Scripted[]>();
  readonly #received = new Map<string, Received[]>();
  readonly #server: Server = createServer((incoming, response) => {
    const path = incoming.url ?? "/";
    const list = this.#received.get(path) ?? [];
    list.push({ method: incoming.method ?? "", headers: incoming.headers });
    this.#received.set(path, list);
    const script = this.#scripts.get(path) ?? [];
    const next = script.length > 1 ? script.shift()! : (script[0] ?? { status: 404 });
    if (next.breaks === true) {
      incoming.socket.destroy();
      return;
    }
    response.statusCode = next.status ?? 200;
    const date = new Date(Date.now() - (next.ageSeconds ?? 0) * 1_000).toUTCString();
    response.setHeader("Date", date);
    for (const [name, value] of Object.entries(next.headers ?? {}))
      response.setHeader(name, value!);
    response.end(next.body ?? `body ${list.length}`);
  });

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  play(path: string, ...script: Scripted[]): void {
    this.#scripts.set(path, script);
  }

  received(path: string): Received[] {
    return this.#received.get(path) ?? [];
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** A path of its own behind the gateway. */
export class Scene {
  readonly path: string;
  readonly #port: number;
  readonly #upstream: ScriptedUpstream;

  constructor(port: number, upstream: ScriptedUpstream, path: string) {
    this.#port = port;
    this.#upstream = upstream;
    this.path = path;
  }

  /** The responses of the upstream, one per request; the last one is repeated. */
  play(...script: Scripted[]): void {
    this.#upstream.play(this.path, ...script);
  }

  /** The same path with a query. */
  withQuery(query: string): Scene {
    return new Scene(this.#port, this.#upstream, `${this.path}?${query}`);
  }

  /** Requests that reached the upstream. */
  get received(): Received[] {
    return this.#upstream.received(this.path);
  }

  /** Sends a request to the path. */
  async ask(headers: OutgoingHttpHeaders = {}, method = "GET", body = ""): Promise<Answered> {
    const { path } = this;
    const sent = request({
      host: "127.0.0.1",
      port: this.#port,
      path,
      headers,
      method,
      agent: false,
    });
    sent.end(body);
    const [response] = await once(sent, "response");
    const pieces: Buffer[] = [];
    for await (const piece of response) pieces.push(piece as Buffer);
    const { statusCode: status, headers: fields } = response;
    return { status, headers: fields, body: Buffer.concat(pieces).toString() };
  }

  /** Waits until so many requests have reached the upstream. */
  async untilReceived(count: number): Promise<void> {
    await waitFor(() => this.received.length >= count, `${count} requests upstream`);
  }

  /** Asks until this response comes from the store, fresh. */
  async untilHit(body: string): Promise<void> {
    await waitFor(async () => {
      const answer = await this.ask();
      return answer.headers["x-cache"] === "HIT" && answer.body === body;
    }, `a hit with ${body}`);
  }

  /** Asks twice: the second response is stored (`HIT`), or comes from the upstream again (`MISS`). */
  async expectSecond(
    status: "HIT" | "MISS" | "STALE",
    headers: OutgoingHttpHeaders = {},
    first: OutgoingHttpHeaders = headers,
  ): Promise<Answered> {
    await this.ask(first);
    const answer = await this.ask(headers);
    assert.equal(answer.headers["x-cache"], status);
    return answer;
  }
}
