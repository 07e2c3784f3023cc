// Answers of models as they are stored, and as clients get them again: whole or as a stream, with another ID.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { AiShape } from "../shape/ai-shape.ts";
import { sumInput, type TokenUsage } from "../usage/token-usage.ts";

/** Shapes whose answers are stored. */
export type StoredShape = Exclude<AiShape, "embeddings">;

const count = z.int().min(0);
const storedSchema = z.object({
  shape: z.enum(["chat", "completions", "responses", "messages"]),
  model: z.string(),
  text: z.string(),
  usage: z.object({ input: count, cachedInput: count, cacheWrite: count, output: count }),
  /** Cost of the request that was answered, in pico-USD. */
  pico: z.string(),
});

/** A stored answer: one text, with the placeholders of personal data. */
export type StoredAnswer = z.infer<typeof storedSchema>;

/** Longest piece of a text in one event. */
const PIECE_CHARACTERS = 256;

/** Reads a stored answer; undefined if it is damaged. */
export function parseStored(json: string): StoredAnswer | undefined {
  try {
    return storedSchema.parse(JSON.parse(json));
  } catch {
    return undefined;
  }
}

/** The answer as one JSON document. */
export function composeDocument(answer: StoredAnswer, nowMs: number): string {
  const { shape, model, text, usage } = answer;
  const created = Math.floor(nowMs / 1_000);
  switch (shape) {
    case "chat":
    case "completions": {
      const isChat = shape === "chat";
      const content = isChat
        ? { message: { role: "assistant", content: text, refusal: null } }
        : { text };
      return JSON.stringify({
        id: makeId(isChat ? "chatcmpl-" : "cmpl-"),
        object: isChat ? "chat.completion" : "text_completion",
        created,
        model,
        choices: [{ index: 0, ...content, logprobs: null, finish_reason: "stop" }],
        usage: composeChatUsage(usage),
      });
    }
    case "messages":
      return JSON.stringify({
        ...composeMessage(model),
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: composeMessageUsage(usage),
      });
    case "responses": {
      const item = composeItem(makeId("msg_"), text, "completed");
      return JSON.stringify(
        composeResponse(makeId("resp_"), model, created, { output: [item], usage }),
      );
    }
    default:
      return shape satisfies never;
  }
}

/** The answer as a stream of events. `hasUsage`: the client wants the usage of a stream of OpenAI's completions. */
export function composeStream(answer: StoredAnswer, nowMs: number, hasUsage: boolean): string {
  const { shape } = answer;
  switch (shape) {
    case "chat":
    case "completions":
      return streamChat(answer, nowMs, hasUsage);
    case "messages":
      return streamMessage(answer);
    case "responses":
      return streamResponse(answer, nowMs);
    default:
      return shape satisfies never;
  }
}

function streamChat(
  { shape, model, text, usage }: StoredAnswer,
  nowMs: number,
  hasUsage: boolean,
): string {
  const isChat = shape === "chat";
  const base = {
    id: makeId(isChat ? "chatcmpl-" : "cmpl-"),
    object: isChat ? "chat.completion.chunk" : "text_completion",
    created: Math.floor(nowMs / 1_000),
    model,
  };
  const event = (more: object): string => `data: ${JSON.stringify({ ...base, ...more })}\n\n`;
  const choice = (content: object, reason: string | null): string =>
    event({ choices: [{ index: 0, ...content, logprobs: null, finish_reason: reason }] });
  const first = isChat ? [choice({ delta: { role: "assistant", content: "" } }, null)] : [];
  const texts = splitText(text).map((piece) =>
    choice(isChat ? { delta: { content: piece } } : { text: piece }, null),
  );
  const last = choice(isChat ? { delta: {} } : { text: "" }, "stop");
  const sums = hasUsage ? [event({ choices: [], usage: composeChatUsage(usage) })] : [];
  return [...first, ...texts, last, ...sums, "data: [DONE]\n\n"].join("");
}

function streamMessage({ model, text, usage }: StoredAnswer): string {
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const { output_tokens: output, ...input } = composeMessageUsage(usage);
  const message = {
    ...composeMessage(model),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1 },
  };
  return [
    event("message_start", { message }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...splitText(text).map((piece) =>
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text: piece } }),
    ),
    event("content_block_stop", { index: 0 }),
    event("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: output },
    }),
    event("message_stop", {}),
  ].join("");
}

function streamResponse({ model, text, usage }: StoredAnswer, nowMs: number): string {
  let sequence = 0;
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...more })}\n\n`;
  const created = Math.floor(nowMs / 1_000);
  const [id, itemId] = [makeId("resp_"), makeId("msg_")];
  const begun = composeResponse(id, model, created, undefined);
  const place = { item_id: itemId, output_index: 0, content_index: 0 };
  const item = composeItem(itemId, text, "completed");
  const part = item.content[0]!;
  return [
    event("response.created", { response: begun }),
    event("response.in_progress", { response: begun }),
    event("response.output_item.added", {
      output_index: 0,
      item: { ...composeItem(itemId, "", "in_progress"), content: [] },
    }),
    event("response.content_part.added", { ...place, part: { ...part, text: "" } }),
    ...splitText(text).map((delta) =>
      event("response.output_text.delta", { ...place, delta, logprobs: [] }),
    ),
    event("response.output_text.done", { ...place, text, logprobs: [] }),
    event("response.content_part.done", { ...place, part }),
    event("response.output_item.done", { output_index: 0, item }),
    event("response.completed", {
      response: composeResponse(id, model, created, { output: [item], usage }),
    }),
  ].join("");
}

function composeMessage(model: string): object {
  return { id: makeId("msg_"), type: "message", role: "assistant", model };
}

function composeItem(id: string, text: string, status: string) {
  const content = [{ type: "output_text", text, annotations: [], logprobs: [] }];
  return { id, type: "message", status, role: "assistant", content };
}

function composeResponse(
  id: string,
  model: string,
  created: number,
  done: { output: object[]; usage: TokenUsage } | undefined,
): object {
  const base = {
    id,
    object: "response",
    created_at: created,
    status: done === undefined ? "in_progress" : "completed",
    error: null,
    incomplete_details: null,
    model,
    output: done?.output ?? [],
    parallel_tool_calls: true,
    tools: [],
  };
  return { ...base, usage: done === undefined ? null : composeResponseUsage(done.usage) };
}

function composeChatUsage(usage: TokenUsage): object {
  const input = sumInput(usage);
  return {
    prompt_tokens: input,
    completion_tokens: usage.output,
    total_tokens: input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput },
  };
}

function composeResponseUsage(usage: TokenUsage): object {
  const input = sumInput(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cachedInput },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + usage.output,
  };
}

function composeMessageUsage(usage: TokenUsage): Record<string, number> {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cachedInput,
    output_tokens: usage.output,
  };
}

/** Pieces of a text, which do not split characters. */
function splitText(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    let end = Math.min(text.length, at + PIECE_CHARACTERS);
    const code = text.charCodeAt(end - 1);
    if (code >= 0xd800 && code < 0xdc00 && end < text.length) end++;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

function makeId(prefix: string): string {
  return prefix + randomUUID().replaceAll("-", "");
}
