// Liveness and readiness probes, answered by the worker from prepared responses.
import { Method, prepareAnswer, type PreparedAnswer } from "@platform/http1";
import { answerProblem } from "../exchange/answers.ts";
import type { GateExchange } from "../exchange/exchange.ts";

const SERVICE = "gate";
const READINESS_PATH = "/readyz";

/** Responses of `/healthz` and `/readyz`; not ready until {@link setReadiness}. */
export class Probes {
  #version = "";
  #up = false;
  #checks: Record<string, string> = { lifecycle: "starting" };
  #isDraining = false;
  #live: PreparedAnswer;
  #ready: PreparedAnswer;

  constructor() {
    this.#live = prepareProbe(true, "", {});
    this.#ready = prepareProbe(false, "", this.#checks);
  }

  /** Sets the version in the bodies. */
  setVersion(version: string): void {
    this.#version = version;
    this.#prepare();
  }

  /** Sets the readiness; `checks` maps a failing check, or a warning if `up`, to its detail. */
  setReadiness(up: boolean, checks: Record<string, string>): void {
    this.#up = up;
    this.#checks = checks;
    this.#prepare();
  }

  /** Reports not ready from now on, regardless of {@link setReadiness}. */
  setDraining(): void {
    this.#isDraining = true;
    this.#prepare();
  }

  /** Answers a probe. */
  answer(exchange: GateExchange, path: string): void {
    const { methodId } = exchange.head;
    if (methodId !== Method.GET && methodId !== Method.HEAD) {
      answerProblem(exchange, "method_not_allowed", "Probes accept GET and HEAD only.", {
        Allow: "GET, HEAD",
      });
      return;
    }
    exchange.respond(path === READINESS_PATH ? this.#ready : this.#live);
  }

  #prepare(): void {
    this.#live = prepareProbe(true, this.#version, {});
    this.#ready = this.#isDraining
      ? prepareProbe(false, this.#version, { lifecycle: "draining" })
      : prepareProbe(this.#up, this.#version, this.#checks);
  }
}

function prepareProbe(
  up: boolean,
  version: string,
  checks: Readonly<Record<string, string>>,
): PreparedAnswer {
  const reports = Object.fromEntries(
    Object.entries(checks).map(([name, detail]) => [name, { status: "DOWN", detail }]),
  );
  const hasWarnings = up && Object.keys(checks).length > 0;
  const body = {
    status: up ? "UP" : "DOWN",
    service: SERVICE,
    version,
    ...(up ? {} : { checks: reports }),
    ...(hasWarnings ? { warnings: checks } : {}),
  };
  return prepareAnswer({
    status: up ? 200 : 503,
    headers: [
      ["Content-Type", "application/json"],
      ["Cache-Control", "no-store"],
      ...(up ? [] : [["Retry-After", "1"] as const]),
    ],
    body: JSON.stringify(body),
  });
}
