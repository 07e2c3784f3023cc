// The gateway with guests that execute scripts, and an upstream that tells what it got.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, type Server, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { waitFor } from "@platform/testing/wait";
import { Stage, type StagedGateway } from "../../stage/stage.ts";
import { type Passed, type Scene, type UPSTREAM, type UpstreamRequest, valuesOf } from "./case.ts";

/** A guest that fails five times in ten seconds is not called for a while: each copy fails at most this often. */
const TRAPS_MAX = 4;
const COPIES = 8;
const LEVELS = ["info", "warn", "error"];

/** A gateway on one runtime. */
export class GatewayStage {
  readonly #stage = new Stage();
  readonly #seen: UpstreamRequest[] = [];
  readonly #traps = new Map<string, number>();
  readonly #upstream: Server;
  #gate!: StagedGateway;

  private constructor(answer: typeof UPSTREAM) {
    this.#upstream = createServer((incoming, response) => {
      void readText(incoming).then((body) => {
        const { method = "", url = "" } = incoming;
        this.#seen.push({ method, target: url, fields: listFields(incoming), body });
        response.writeHead(answer.status, answer.fields.flat());
        response.end(answer.body);
      });
    });
  }

  /** Starts the gateway and its upstream, which answers each request alike. */
  static async start(
    runtime: "node" | "bun",
    config: string,
    answer: typeof UPSTREAM,
  ): Promise<GatewayStage> {
    const stage = new GatewayStage(answer);
    await stage.#start(runtime, config);
    return stage;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stage[Symbol.asyncDispose]();
    this.#upstream.closeAllConnections();
    this.#upstream.close();
  }

  async #start(runtime: "node" | "bun", config: string): Promise<void> {
    this.#upstream.listen(0, "127.0.0.1");
    await once(this.#upstream, "listening");
    const target = `http://127.0.0.1:${(this.#upstream.address() as AddressInfo).port}`;
    const guests = ["assemblyscript", "c"].flatMap((language) =>
      Array.from({ length: COPIES }, (_, copy) => `${language}-${copy}`),
    );
    const routes = guests.flatMap((name) => {
      const fields = { middleware: name, response_middleware: name, middleware_config: config };
      return [
        { host: `${name}.test`, prefix: "/", target, ...fields },
        { host: `alone-${name}.test`, prefix: "/", target: "http://127.0.0.1:1", ...fields },
      ];
    });
    const env = { PLATFORM_RUNTIME: runtime };
    this.#gate = await this.#stage.startGateway(routes, { workers: 1 }, env);
  }

  /** Registers a guest. */
  async register(language: string, module: Buffer<ArrayBuffer>): Promise<void> {
    for (let copy = 0; copy < COPIES; copy++) {
      const url = `${this.#gate.url}/api/v1/admin/middleware/${language}-${copy}`;
      const answer = await fetch(url, { method: "POST", body: module });
      assert.equal(answer.status, 200, await answer.text());
    }
  }

  /** Sends the request of a scene. */
  async pass(language: string, scene: Scene): Promise<Passed> {
    this.#seen.length = 0;
    const before = this.#listLines().length;
    const copy = Math.floor((this.#traps.get(language) ?? 0) / TRAPS_MAX);
    const host = `${scene.isAlone ? "alone-" : ""}${language}-${copy}.test`;
    const answer = await this.#ask(host, scene);
    const isTrapped = answer.status === 502 && answer.body.includes('"middleware_failed"');
    if (isTrapped) this.#traps.set(language, (this.#traps.get(language) ?? 0) + 1);
    const logged = () => (isTrapped ? [] : this.#listLines().slice(before));
    const expected = scene.script.match(/\blog [0-2] /g)?.length ?? 0;
    await waitFor(() => logged().length >= expected);
    const [upstream] = this.#seen;
    return {
      ...answer,
      out: valuesOf(answer.fields, "x-out")[0] ?? "",
      ...(upstream === undefined ? {} : { upstream }),
      isTrapped,
      lines: logged(),
    };
  }

  /** Lines of guests, as `level text`. */
  #listLines(): string[] {
    return this.#gate.process
      .readOutput()
      .split("\n")
      .flatMap((line) => {
        if (!line.startsWith("{") || !line.endsWith("}")) return [];
        const { level, msg, middleware } = JSON.parse(line) as Record<string, unknown>;
        const isOfGuest = typeof middleware === "string" && LEVELS.includes(String(level));
        return isOfGuest ? [`${LEVELS.indexOf(String(level))} ${String(msg)}`] : [];
      });
  }

  #ask(
    host: string,
    { method, target, fields, body, script, late }: Scene,
  ): Promise<Pick<Passed, "status" | "fields" | "body" | "client">> {
    const headers = [
      ["Host", host],
      ...fields,
      ...(script === "" ? [] : [["X-Script", script]]),
      ...(late === "" ? [] : [["X-Then", late]]),
      ...(method === "POST" ? [["Content-Length", String(Buffer.byteLength(body))]] : []),
    ];
    return new Promise((resolve, reject) => {
      const sent = request({
        host: "127.0.0.1",
        port: this.#gate.port,
        method,
        path: target,
        headers: headers.flat(),
        setHost: false,
        agent: false,
      });
      let client = "";
      sent.on("socket", (socket) =>
        socket.on("connect", () => {
          client = `${socket.localAddress}:${socket.localPort}`;
        }),
      );
      sent.on("error", reject);
      sent.on("response", (incoming) => {
        readText(incoming).then((text) => {
          const status = incoming.statusCode ?? 0;
          resolve({ status, fields: listFields(incoming), body: text, client });
        }, reject);
      });
      sent.end(body);
    });
  }
}

async function readText(message: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of message.setEncoding("latin1") as AsyncIterable<string>) text += piece;
  return text;
}

function listFields({ rawHeaders }: IncomingMessage): [string, string][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
    rawHeaders[at * 2]!.toLowerCase(),
    rawHeaders[at * 2 + 1]!,
  ]);
}
