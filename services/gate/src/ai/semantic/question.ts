// The question of a request to a model, and everything else on which its answer depends.
import { createHash } from "node:crypto";
import { JsonKind, type JsonScanner } from "../shape/json-scan.ts";
import type { AiRequest } from "../shape/read-request.ts";

/** Longest question in bytes. */
const QUESTION_BYTES_MAX = 4_096;
/** Members on which the answer does not depend, only its form. */
const FORM_MEMBERS: ReadonlySet<string> = new Set(["stream", "stream_options"]);
/** Members with which an answer is more than one text, or depends on more than the request. */
const STATEFUL_MEMBERS = [
  "tools",
  "functions",
  "previous_response_id",
  "conversation",
  "background",
  "audio",
  "logprobs",
  "top_logprobs",
  "web_search_options",
  "suffix",
  "echo",
];

/** A question and its scope. */
export interface Question {
  /** The last text of the user. */
  readonly text: string;
  /** Digest of all that must be equal: context, model, other messages, parameters. */
  readonly scope: string;
}

/** Reads the question of a request; undefined if its answer is not to be stored. `context` is what counts beside the body. */
export function readQuestion(
  request: AiRequest,
  tree: JsonScanner,
  context: readonly string[],
): Question | undefined {
  if (request.shape === "embeddings" || request.isCount) return undefined;
  if (request.images > 0 || request.choices > 1) return undefined;
  if (STATEFUL_MEMBERS.some((name) => isSet(tree, tree.find(0, name)))) return undefined;
  const last = request.texts.findLast(({ role, isData }) => role === "user" && !isData);
  if (last === undefined) return undefined;
  const text = tree.text(last.node);
  if (text === "" || Buffer.byteLength(text) > QUESTION_BYTES_MAX) return undefined;
  const hash = createHash("sha256");
  for (const part of [request.shape, request.model, ...context])
    hash.update(`${Buffer.byteLength(part)} ${part}\n`);
  const [from, to] = [tree.start(last.node), tree.end(last.node)];
  for (const member of tree.children(0)) {
    const name = tree.name(member);
    if (FORM_MEMBERS.has(name) || name === "model") continue;
    const [start, end] = [tree.start(member), tree.end(member)];
    const holdsText = start <= from && end >= to;
    hash.update(`${end - start - (holdsText ? to - from : 0)} ${JSON.stringify(name)}\n`);
    if (holdsText) {
      hash.update(tree.bytes.subarray(start, from));
      hash.update("\0");
      hash.update(tree.bytes.subarray(to, end));
    } else hash.update(tree.bytes.subarray(start, end));
  }
  return { text, scope: hash.digest("base64url") };
}

// False, null and empty lists switch nothing on.
function isSet(tree: JsonScanner, node: number): boolean {
  if (node === -1) return false;
  const kind = tree.kind(node);
  if (kind === JsonKind.Null || kind === JsonKind.False) return false;
  return kind !== JsonKind.Array || tree.firstChild(node) !== -1;
}
