// `model-upstream.ts PORT [burst]`: a provider of models that answers each POST with a stream of 100 events, as OpenAI's: each
// in a write of its own, or all in one.
import { createServer } from "node:http";

/** Events with content in each answer. */
const EVENTS = 100;
const WORDS = "the gateway reads every event and passes it on before the next one arrives".split(
  " ",
);

const [port, mode] = process.argv.slice(2);
const events = mode === "burst" ? [Buffer.concat(listEvents())] : listEvents();

createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    let next = 0;
    const send = (): void => {
      if (response.destroyed) return;
      if (next === events.length) response.end();
      else {
        response.write(events[next++]!);
        setImmediate(send);
      }
    };
    send();
  });
}).listen(Number(port), "127.0.0.1", 4_096);

function listEvents(): Buffer[] {
  const chunk = (members: object): string =>
    JSON.stringify({
      id: "chatcmpl-9f8e7d6c5b4a39281706f5e4d3c2b1a0",
      object: "chat.completion.chunk",
      created: 1_790_000_000,
      model: "m-large",
      system_fingerprint: "fp_44709d6fcb",
      ...members,
    });
  const choice = (delta: object, finish_reason: string | null): object => ({
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
  const data = [
    chunk(choice({ role: "assistant", content: "" }, null)),
    ...Array.from({ length: EVENTS }, (_, index) =>
      chunk(choice({ content: ` ${WORDS[index % WORDS.length]!}` }, null)),
    ),
    chunk(choice({}, "stop")),
    chunk({
      choices: [],
      usage: { prompt_tokens: 512, completion_tokens: 101, total_tokens: 613 },
    }),
    "[DONE]",
  ];
  return data.map((text) => Buffer.from(`data: ${text}\n\n`));
}
