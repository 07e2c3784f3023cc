// The clients of the soak: each request has a prompt of its own, by which its cost is found at the provider.
import { setTimeout as sleep } from "node:timers/promises";
import { OUTPUT_TOKENS } from "./providers.ts";

/** Routes, and what a request of each costs in USD. */
export const ROUTES = {
  /** Its provider dies within answers. */
  flat: { model: "flat", usd: 0.01 },
  /** Its cost is that of the tokens that the provider reports. */
  metered: { model: "metered", usd: 0.05 },
  /** Its price changes; answers say which one they had. */
  repriced: { model: "repriced", usd: 0.02 },
  /** The second provider answers if the first one does not. */
  fallback: { model: "flat", usd: 0.01 },
  /** Of a tenant whose budget runs out. */
  poor: { model: "flat", usd: 0.01 },
} as const;

export type RouteName = keyof typeof ROUTES;
export const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[];

/** Refusals after which nothing went up. */
const UNSENT: ReadonlySet<string> = new Set([
  "circuit_open",
  "insufficient_quota",
  "overloaded",
  "unavailable",
  "upstream_unreachable",
]);

const PAUSE_MS = 30;

/** Outcomes of the requests of one route. */
export class RouteCounts {
  readonly outcomes: Record<string, number> = {};
  /** Prompts of answers that arrived as a whole. */
  readonly whole = new Set<string>();
  /** Prompts of requests that may have gone up, or not. */
  readonly unsure = new Set<string>();
  /** Sum of the costs that answers named, in hundredths of a USD. */
  namedCents = 0;
}

/** Options of {@link keepAsking}. */
export interface AskOptions {
  url: string;
  route: RouteName;
  /** Tells the requests of this client from those of others. */
  client: number;
  token: string;
  counts: RouteCounts;
  over: AbortSignal;
}

/** Repeats requests until the end, every second one streamed; those of `repriced` are not, because their heads name the cost. */
export async function keepAsking(options: AskOptions): Promise<void> {
  const { route, client, over, counts } = options;
  for (let turn = 0; !over.aborted; turn++) {
    const prompt = `${route} ${client} ${turn}`;
    const outcome = await ask(options, prompt, turn % 2 === 1 && route !== "repriced");
    counts.outcomes[outcome] = (counts.outcomes[outcome] ?? 0) + 1;
    if (outcome === "whole") counts.whole.add(prompt);
    else if (!UNSENT.has(outcome)) counts.unsure.add(prompt);
    await sleep(PAUSE_MS);
  }
}

/** `whole`, `cut` within its answer, `broken` before it, or the code of a refusal. */
async function ask(
  { url, route, token, counts }: AskOptions,
  prompt: string,
  stream: boolean,
): Promise<string> {
  const { model } = ROUTES[route];
  const body = { model, stream, max_tokens: OUTPUT_TOKENS };
  let answer: Response | undefined;
  try {
    answer = await fetch(`${url}/${route}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ ...body, messages: [{ role: "user", content: prompt }] }),
    });
    const text = await answer.text();
    if (answer.status !== 200) {
      const { error } = JSON.parse(text) as { error: { code: string } };
      return error.code;
    }
    const isWhole = stream ? text.includes("[DONE]") : text.endsWith("}");
    if (isWhole && !stream) {
      counts.namedCents += Math.round(Number(answer.headers.get("x-token-cost")) * 100);
    }
    return isWhole ? "whole" : "cut";
  } catch {
    return answer === undefined ? "broken" : "cut";
  }
}
