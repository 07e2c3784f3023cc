// Invalid upstream responses: what the client receives, and what happens to the connection.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  ask,
  openRaw,
  startUpstream,
  type RawClient,
  type RawUpstream,
} from "../../packages/http1/test/rig/raw.ts";
import { readMetric, RUNTIMES, skipRuntime } from "../stage/gateway-state.ts";
import { Stage, type StagedGateway } from "../stage/stage.ts";
import { badAnswers, type BadAnswer } from "./answers.ts";

const SOUND = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsound";
const SOUND_ANSWER: Answer = { status: 200, content: "sound" };
const LAST_REQUEST = "GET /sound HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
/** Long enough for timely responses on a busy machine. */
const TIMEOUT_MS = 2_500;

interface Answer {
  status: number;
  content: string;
}

for (const runtime of RUNTIMES) {
  describe(`malformed responses, the gateway on ${runtime}`, { skip: skipRuntime(runtime) }, () => {
    const stage = new Stage();
    let upstream: RawUpstream;
    let gateway: StagedGateway;

    before(async () => {
      upstream = await startUpstream(answer);
      gateway = await stage.startGateway(
        [{ prefix: "/", target: `http://127.0.0.1:${upstream.port}` }],
        { workers: 1, response_timeout_ms: TIMEOUT_MS, idle_timeout_ms: TIMEOUT_MS },
        { PLATFORM_RUNTIME: runtime },
      );
    });
    after(async () => {
      await upstream.stop();
      await stage[Symbol.asyncDispose]();
    });

    test("each causes a 502, a 504 or a broken connection, and the upstream connection is closed", async () => {
      await Promise.all(badAnswers.map((bad, index) => expectVerdict(bad, index)));
      assert.equal(await readMetric(gateway, "platform_gate_workers_replaced_total"), 0);
    });

    test("the same applies to reused connections, and no client receives a response of another", async () => {
      for (const [index, bad] of badAnswers.entries()) {
        if (isSlow(bad)) continue;
        assert.deepEqual(await readAnswersTo("/sound"), [SOUND_ANSWER]);
        await expectVerdict(bad, index);
        assert.deepEqual(await readAnswersTo("/sound"), [SOUND_ANSWER]);
      }
    });

    async function expectVerdict(bad: BadAnswer, index: number): Promise<void> {
      const { name, verdict } = bad;
      const path = `/bad/${index}`;
      const client = await openRaw(gateway.port);
      client.socket.write(`GET ${path} HTTP/1.1\r\nHost: a.example\r\n\r\n${LAST_REQUEST}`);
      const listAsked = (): RawClient[] =>
        upstream.connections.filter(({ text }) => text.includes(`GET ${path} `));
      if (bad.later !== undefined) {
        await client.untilText(bad.bytes.endsWith("\r\n\r\n") ? "\r\n\r\n" : "half");
        for (const connection of listAsked()) finishAnswer(connection, bad, bad.later);
      }
      await client.untilClosed();
      client.socket.destroy();
      const answers = readAnswers(client.text);
      switch (verdict.kind) {
        case "refused": {
          assert.equal(answers[0]?.status, verdict.status, name);
          const problem = JSON.parse(answers[0].content) as { code: string };
          assert.match(problem.code, verdict.code, name);
          assert.deepEqual(answers.slice(1), [SOUND_ANSWER], name);
          break;
        }
        case "passed": {
          const { status, content } = verdict;
          assert.deepEqual(answers, [{ status, content }, SOUND_ANSWER], name);
          break;
        }
        case "cut":
          assert.deepEqual(answers, [], name);
          break;
        default:
          verdict satisfies never;
      }
      await client.until(
        () => listAsked().every(({ closed }) => closed),
        `${name}: a close upstream`,
      );
    }

    async function readAnswersTo(path: string): Promise<Answer[]> {
      const head = `GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`;
      return readAnswers(await ask(gateway.port, head));
    }
  });
}

/** True if only a timeout ends it. */
function isSlow({ verdict, ending, later }: BadAnswer): boolean {
  if (verdict.kind === "refused") return verdict.status === 504;
  return verdict.kind === "cut" && ending === "waits" && later === "";
}

/** Responds to a complete request: correctly, or as `/bad/INDEX` says. */
function answer(client: RawClient): void {
  const path = /GET (\S+) [^]*?\r\n\r\n$/.exec(
    client.text.slice(client.text.lastIndexOf("GET ")),
  )?.[1];
  if (path === undefined) return;
  const bad = badAnswers[Number(/^\/bad\/(\d+)$/.exec(path)?.[1] ?? -1)];
  if (bad === undefined) {
    client.socket.write(SOUND);
    return;
  }
  if (bad.later === undefined) finishAnswer(client, bad, bad.bytes);
  else client.socket.write(bad.bytes, "latin1");
}

function finishAnswer({ socket }: RawClient, { ending }: BadAnswer, bytes: string): void {
  if (bytes !== "") socket.write(bytes, "latin1");
  if (ending === "closes") socket.end();
  if (ending === "resets") socket.resetAndDestroy();
}

/** Returns complete responses without informational ones, up to the first incomplete one. */
function readAnswers(text: string): Answer[] {
  const answers: Answer[] = [];
  for (let rest = text; ;) {
    const headEnd = rest.indexOf("\r\n\r\n");
    if (headEnd === -1) return answers;
    const head = rest.slice(0, headEnd);
    const status = Number(head.slice(9, 12));
    rest = rest.slice(headEnd + 4);
    if (status < 200) continue;
    const content = readContent(head, status, rest);
    if (content === null) return answers;
    answers.push({ status, content: content.text });
    rest = rest.slice(content.size);
  }
}

function readContent(
  head: string,
  status: number,
  rest: string,
): { text: string; size: number } | null {
  if (status === 204 || status === 304) return { text: "", size: 0 };
  if (/\r\nTransfer-Encoding: chunked/i.test(head)) {
    const whole = /^([0-9a-f]+)\r\n([^]*?)\r\n0\r\n(?:[^\r\n]+\r\n)*\r\n/i.exec(rest);
    if (whole === null) return null;
    const [all, size = "", text = ""] = whole;
    return Number.parseInt(size, 16) === text.length ? { text, size: all.length } : null;
  }
  const size = Number(/\r\nContent-Length: (\d+)/i.exec(head)?.[1] ?? 0);
  return rest.length < size ? null : { text: rest.slice(0, size), size };
}
