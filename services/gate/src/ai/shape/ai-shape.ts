// Kinds of requests to model providers, by the end of their path.

/** A kind of request: OpenAI's chat completions, completions, embeddings and responses, and Anthropic's messages. */
export type AiShape = "chat" | "completions" | "embeddings" | "responses" | "messages";

/** A request that the gateway can read. */
export interface AiKind {
  readonly shape: AiShape;
  /** Counts tokens only: no model answers, nothing is billed. */
  readonly isCount: boolean;
}

const KINDS: readonly (readonly [end: string, kind: AiKind])[] = [
  ["/chat/completions", { shape: "chat", isCount: false }],
  ["/completions", { shape: "completions", isCount: false }],
  ["/embeddings", { shape: "embeddings", isCount: false }],
  ["/responses", { shape: "responses", isCount: false }],
  ["/messages", { shape: "messages", isCount: false }],
  ["/messages/count_tokens", { shape: "messages", isCount: true }],
];

/** The kind of a request to a normalized path; undefined for all others. A slash at the end does not matter. */
export function findAiKind(path: string): AiKind | undefined {
  const bare = path.endsWith("/") ? path.slice(0, -1) : path;
  return KINDS.find(([end]) => bare.endsWith(end))?.[1];
}
