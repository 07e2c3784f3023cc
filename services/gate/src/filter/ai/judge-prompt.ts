// Judges the prompts of a route: by the rules of the gateway and, if there is one, by a service.
import { createEgress } from "@platform/kernel/egress";
import { RE2JS } from "re2js";
import { z } from "zod";
import { compileRules } from "../../ai/guard/prompt-guard.ts";
import type { JsonScanner } from "../../ai/shape/json-scan.ts";
import type { AiRequest } from "../../ai/shape/read-request.ts";
import type { ConfinedSpec, GuardSpec, TextRole } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";

const SERVICE_MS = 500;
const CALLS_MAX = 1_024;
const ANSWER_BYTES_MAX = 65_536;
/** Longest text that the service gets; of longer ones it judges the beginning. */
const TEXT_CHARACTERS_MAX = 262_144;
const answerSchema = z.object({ score: z.number().min(0).max(1) });

type Fetch = (
  url: string,
  request: { method: string; headers: Headers; body: string; signal: AbortSignal },
) => Promise<Response>;

type JudgeParts = Pick<StepParts, "ai" | "onGuardError">;

/** The judge of one route. */
export class PromptJudge {
  readonly spec: GuardSpec;
  readonly #roles: ReadonlySet<TextRole>;
  readonly #allowed: readonly RE2JS[];
  readonly #parts: JudgeParts;
  readonly #fetch: Fetch;

  constructor(spec: GuardSpec, confined: ConfinedSpec | undefined, parts: JudgeParts) {
    compileRules();
    this.spec = spec;
    this.#roles = new Set(spec.roles);
    this.#allowed = spec.allow.map((pattern) => RE2JS.compile(pattern));
    this.#parts = parts;
    this.#fetch =
      confined === undefined
        ? (url, request) => fetch(url, { ...request, redirect: "error" })
        : createEgress({
            allowedNetworks: confined.networks,
            timeoutMs: SERVICE_MS,
            answerBytesMax: ANSWER_BYTES_MAX,
            callsMax: CALLS_MAX,
          });
  }

  /** The highest score of the judged texts; 1 if the service fails and the route does not let such requests pass. */
  async judge(request: AiRequest, tree: JsonScanner): Promise<number> {
    const texts = this.#listTexts(request, tree);
    let highest = 0;
    for (const { text, isData } of texts) {
      const score = this.#parts.ai.guard.judge(text, isData);
      highest = Math.max(highest, typeof score === "number" ? score : await score);
    }
    const { url } = this.spec;
    if (url === undefined || texts.length === 0 || highest >= this.spec.threshold) return highest;
    const whole = texts.map(({ text }) => text).join("\n\n");
    return Math.max(highest, await this.#ask(url, whole));
  }

  #listTexts({ texts }: AiRequest, tree: JsonScanner): { text: string; isData: boolean }[] {
    return texts
      .filter(({ role }) => this.#roles.has(role))
      .map(({ node, isData }) => ({ text: tree.text(node), isData }))
      .filter(({ text }) => !this.#allowed.some((pattern) => pattern.matcher(text).find()));
  }

  async #ask(url: string, text: string): Promise<number> {
    try {
      const answer = await this.#fetch(url, {
        method: "POST",
        headers: new Headers({ "content-type": "application/json" }),
        body: JSON.stringify({ text: text.slice(0, TEXT_CHARACTERS_MAX) }),
        signal: AbortSignal.timeout(SERVICE_MS),
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      return answerSchema.parse(await answer.json()).score;
    } catch (cause) {
      this.#parts.onGuardError("the service that judges prompts does not answer", url, cause);
      return this.spec.isOpenOnError ? 0 : 1;
    }
  }
}
