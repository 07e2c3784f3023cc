// The gateway with guests that execute scripts, and an upstream that tells what it got.
import assert from "node:assert/strict";
import { type IncomingMessage, createServer, request } from "node:http";
import type { TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  type LogLine,
  type Runtime,
  startGate,
} from "../../../services/gate/test/fixture/gate-process.ts";
import { serve } from "../../../services/gate/test/fixture/serve.ts";
import { type Passed, type Scene, type UPSTREAM, type UpstreamRequest, valuesOf } from "./case.ts";

/** A guest that fails five times in ten seconds is not called for a while: each copy fails at most this often. */
const TRAPS_MAX = 4;
const COPIES = 8;
const LEVELS = ["info", "warn", "error"];

interface Gate {
  readonly port: number;
  readonly url: string;
  readonly lines: () => LogLine[];
}

/** A gateway on one runtime. */
export class GatewayStage {
  readonly #gate: Gate;
  readonly #seen: UpstreamRequest[];
  readonly #traps = new Map<string, number>();

  constructor(gate: Gate, seen: UpstreamRequest[]) {
    this.#gate = gate;
    this.#seen = seen;
  }

  /** Starts the gateway and its upstream, which answers each request alike. */
  static async start(
    context: TestContext,
    runtime: Runtime,
    config: string,
    answer: typeof UPSTREAM,
  ): Promise<GatewayStage> {
    const seen: UpstreamRequest[] = [];
    const upstream = createServer((incoming, response) => {
      void readText(incoming).then((body) => {
        const { method = "", url = "" } = incoming;
        seen.push({ method, target: url, fields: listFields(incoming), body });
        response.writeHead(answer.status, answer.fields.flat());
        response.end(answer.body);
      });
    });
    const target = await serve(context, upstream);
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
    const gate = await startGate(context, { runtime, config: { workers: 1, routes } });
    return new GatewayStage(gate, seen);
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
    const linesBefore = this.#gate.lines().length;
    const copy = Math.floor((this.#traps.get(language) ?? 0) / TRAPS_MAX);
    const host = `${scene.isAlone ? "alone-" : ""}${language}-${copy}.test`;
    const answer = await this.#ask(host, scene);
    const isTrapped = answer.status === 502 && answer.body.includes('"middleware_failed"');
    if (isTrapped) this.#traps.set(language, (this.#traps.get(language) ?? 0) + 1);
    const logged = () =>
      this.#gate
        .lines()
        .slice(linesBefore)
        .flatMap(({ level, msg, middleware }) =>
          middleware === undefined || !LEVELS.includes(String(level)) || isTrapped
            ? []
            : [`${LEVELS.indexOf(String(level))} ${msg}`],
        );
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
