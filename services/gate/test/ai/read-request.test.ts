// Requests to models: texts with their roles, bounds, and members of other types than the APIs have.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findAiKind } from "../../src/ai/shape/ai-shape.ts";
import { editBody, requestUsage } from "../../src/ai/shape/edit-body.ts";
import { JsonScanner } from "../../src/ai/shape/json-scan.ts";
import { type AiRequest, AiRequestFault, readAiRequest } from "../../src/ai/shape/read-request.ts";

function read(
  path: string,
  body: unknown,
): AiRequest & { list: [role: string, text: string][]; data: string[] } {
  const scanner = new JsonScanner();
  const text = typeof body === "string" ? body : JSON.stringify(body);
  assert.ok(scanner.scan(Buffer.from(text)), text);
  const request = readAiRequest(findAiKind(path)!, scanner);
  const list = request.texts.map(({ role, node }): [string, string] => [role, scanner.text(node)]);
  const data = request.texts.filter(({ isData }) => isData).map(({ node }) => scanner.text(node));
  return { ...request, list, data };
}

test("kinds are told apart by the end of the path", () => {
  const kinds = [
    "/v1/chat/completions",
    "/openai/deployments/x/completions",
    "/v1/embeddings/",
    "/v1/responses",
    "/anthropic/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1/responses/resp_1",
    "/messages.txt",
  ];
  const found = kinds.map((path) => findAiKind(path)?.shape);
  assert.deepEqual(found, [
    "chat",
    "completions",
    "embeddings",
    "responses",
    "messages",
    "messages",
    undefined,
    undefined,
    undefined,
  ]);
  assert.equal(findAiKind("/v1/messages/count_tokens")?.isCount, true);
});

test("chat: texts of all parts, tools and calls, images, bounds", () => {
  const request = read("/v1/chat/completions", {
    model: "gpt-x",
    messages: [
      { role: "developer", content: "be brief" },
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "result" },
    ],
    tools: [{ type: "function", function: { name: "f", description: "d" } }],
    max_tokens: 10,
    max_completion_tokens: 20,
    n: 2,
    stream: true,
    stream_options: { include_usage: true },
  });
  assert.deepEqual(request.list.slice(0, 2), [
    ["system", "be brief"],
    ["user", "look"],
  ]);
  assert.ok(request.list.some(([role, text]) => role === "assistant" && text === '{"a":1}'));
  assert.deepEqual(request.list.at(-1), ["tool", "result"]);
  assert.equal(request.images, 1);
  assert.equal(request.outputTokensMax, 20);
  assert.equal(request.choices, 2);
  assert.equal(request.wantsUsage, true);
  assert.ok(request.textBytes > 50, "descriptions of tools are input, too");
});

test("messages: system, blocks, results of tools, documents", () => {
  const { list, data, images } = read("/v1/messages", {
    model: "claude-x",
    max_tokens: 100,
    system: [{ type: "text", text: "sys" }],
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "t", name: "f", input: { q: "deep" } }],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "found" }] },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "doc" } },
          { type: "image", source: { type: "base64", data: "AAAA" } },
          {
            type: "document",
            title: "title",
            context: "context",
            source: { type: "content", content: [{ type: "text", text: "block" }] },
          },
          { type: "document", source: { type: "content", content: "whole" } },
          { type: "search_result", content: [{ type: "text", text: "hit" }] },
        ],
      },
    ],
  });
  assert.deepEqual(list, [
    ["system", "sys"],
    ["user", "hi"],
    ["assistant", "deep"],
    ["tool", "found"],
    ["user", "doc"],
    ["user", "title"],
    ["user", "context"],
    ["user", "block"],
    ["user", "whole"],
    ["user", "hit"],
  ]);
  assert.deepEqual(data, ["found", "doc", "title", "context", "block", "whole", "hit"]);
  assert.equal(images, 4);
});

test("responses, completions and embeddings", () => {
  assert.deepEqual(read("/v1/responses", { model: "m", instructions: "i", input: "q" }).list, [
    ["system", "i"],
    ["user", "q"],
  ]);
  const items = [
    { role: "user", content: [{ type: "input_text", text: "a" }] },
    { type: "function_call", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "1", output: "out" },
  ];
  assert.deepEqual(read("/v1/responses", { model: "m", input: items }).list, [
    ["user", "a"],
    ["assistant", "{}"],
    ["tool", "out"],
  ]);
  assert.deepEqual(
    read("/v1/completions", { model: "m", prompt: ["a", "b"], n: 2 }).list.length,
    2,
  );
  assert.equal(read("/v1/completions", { model: "m", prompt: ["a", "b"], n: 2 }).choices, 4);
  assert.equal(read("/v1/embeddings", { model: "m", input: [[1, 2, 3]] }).list.length, 0);
});

test("members with other types are refused by name", () => {
  const message = [{ role: "user", content: "x" }];
  const cases: [member: string, body: object][] = [
    ["model", { model: 5, messages: message }],
    ["stream", { model: "m", messages: message, stream: "true" }],
    ["max_tokens", { model: "m", messages: message, max_tokens: -1 }],
    ["max_tokens", { model: "m", messages: message, max_tokens: 1.5 }],
    ["max_tokens", { model: "m", messages: message, max_tokens: 1e18 }],
    ["n", { model: "m", messages: message, n: 1_000 }],
    ["messages", { model: "m", messages: "x" }],
    ["messages", { model: "m", messages: [5] }],
    ["messages", { model: "m", messages: [{ role: "user", content: { a: 1 } }] }],
    ["stream_options", { model: "m", messages: message, stream: true, stream_options: 1 }],
  ];
  for (const [member, body] of cases) {
    assert.throws(
      () => read("/v1/chat/completions", body),
      (error) => error instanceof AiRequestFault && error.member === member,
      JSON.stringify(body),
    );
  }
  assert.throws(() => read("/v1/chat/completions", "[]"), AiRequestFault);
});

test("asking for the usage changes nothing else of the body", () => {
  const cases: [before: string, after: string][] = [
    ['{ "stream":true }', '{"stream_options":{"include_usage":true}, "stream":true }'],
    [
      '{"a": 1.0,"stream_options":{"x":1},"b":"\\u00e4"}',
      '{"a": 1.0,"stream_options":{"include_usage":true,"x":1},"b":"\\u00e4"}',
    ],
    ['{"stream_options":{"include_usage": false}}', '{"stream_options":{"include_usage": true}}'],
    ['{"stream_options":null}', '{"stream_options":{"include_usage":true}}'],
    ['{"stream_options":{}}', '{"stream_options":{"include_usage":true}}'],
  ];
  for (const [before, after] of cases) {
    const scanner = new JsonScanner();
    const body = Buffer.from(before);
    assert.ok(scanner.scan(body));
    assert.equal(editBody(body, [requestUsage(scanner)]).toString(), after);
  }
});
