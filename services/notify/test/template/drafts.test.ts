// Previews of unsaved templates, versions and conflicts.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { TemplateEngine } from "../../src/template/engine.ts";
import { STAGE_KINDS, startStage, startStageOn, type Answer, type Stage } from "../stage.ts";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(`${kind}: a save that expects another version changes nothing`, { skip }, async () => {
    const stage = await startStageOn(await prepare());
    const save = (text: string, headers: Record<string, string>): Promise<Answer> =>
      stage.call("POST", "/api/v1/templates", { name: "hi", text }, headers);
    assert.equal((await save("gone", { "If-Match": '"1"' })).status, 412);
    assert.equal((await save("one", { "If-None-Match": "*" })).status, 201);
    const second = await save("again", { "If-None-Match": "*" });
    assert.equal(second.status, 412);
    assert.equal(second.body.version, 1);
    const read = await stage.call("GET", "/api/v1/templates/hi");
    assert.equal(read.headers.get("etag"), '"1"');
    const answers = await Promise.all(
      ["two", "three", "four"].map((text) => save(text, { "If-Match": '"1"' })),
    );
    assert.deepEqual(
      answers.map(({ status }) => status).sort((a, b) => a - b),
      [201, 412, 412],
    );
    assert.equal((await save("five", { "If-Match": "weird" })).status, 412);
    const versions = await stage.call("GET", "/api/v1/templates/hi/versions");
    assert.deepEqual(
      versions.body.versions.map((one: { version: number; html?: string }) => [
        one.version,
        "html" in one,
      ]),
      [
        [2, false],
        [1, false],
      ],
    );
    const first = await stage.call("GET", "/api/v1/templates/hi/versions/1");
    assert.deepEqual([first.body.text, first.body.active], ["one", false]);
    assert.equal((await stage.call("GET", "/api/v1/templates/hi/versions/9")).status, 404);
    assert.equal((await stage.call("GET", "/api/v1/templates/hi/versions/x")).status, 400);
    await stage.close();
  });
}

describe("a draft", () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage({ from_domain: "shop.example" });
    await stage.call("POST", "/api/v1/templates", { name: "footer", html: "<i>{{ shop }}</i>" });
    await stage.call("POST", "/api/v1/templates", {
      name: "loop",
      text: "{% include 'loop' %}",
      html: "{% include 'loop' %}",
    });
  });
  after(() => stage.close());

  const preview = async (source: object, variables: unknown = {}): Promise<Answer> => {
    const answer = await stage.call("POST", "/api/v1/templates/new/preview", { source, variables });
    assert.equal(answer.status, 200, answer.text);
    return answer;
  };

  test("is rendered without being saved, and its HTML has an address for a frame", async () => {
    const source = {
      subject: "Hi {{ name }}",
      html: "<p>{{ name }}</p><script>alert(1)</script>{% include 'footer' %}",
    };
    const { body } = await preview(source, { name: "<Ada>", shop: "S" });
    assert.equal(body.subject, "Hi <Ada>");
    assert.equal(body.text, "<Ada>\n\nS");
    assert.deepEqual(body.errors, []);
    assert.deepEqual(body.variables, ["name", "shop"]);
    assert.equal((await stage.call("GET", "/api/v1/templates/new")).status, 404);
    const view = await stage.call("GET", `${body.html_path}?scheme=dark`);
    assert.match(view.headers.get("content-security-policy")!, /default-src 'none'.*sandbox/);
    assert.match(view.text, /color-scheme" content="dark".*<p>&lt;Ada&gt;<\/p>/);
    stage.advance(61_000);
    assert.equal((await stage.call("GET", body.html_path)).status, 404);
  });

  test("reports each failed part with its line, and renders the others", async () => {
    const { body } = await preview({
      subject: "{{ a",
      html: "<p>\n\n  {{ name | shout }}",
      text: "fine {{ name }}",
    });
    assert.equal(body.text.trim(), "fine");
    assert.deepEqual(
      body.errors.map(({ part, reason, line, column }: Record<string, unknown>) => [
        part,
        reason,
        line,
        column,
      ]),
      [
        ["subject", "syntax", 1, 1],
        ["html", "syntax", 3, 3],
      ],
    );
    assert.deepEqual(body.warnings, ["the variable name is missing"]);
    const unquoted = await preview({ text: "a\nb {% include name %}" });
    assert.deepEqual([unquoted.body.errors[0].line, unquoted.body.errors[0].column], [2, 3]);
  });

  test("that loops, grows or includes itself ends at its limits, and the service answers meanwhile", async () => {
    const bombs = [
      "{% for a in (1..1000000) %}{% for b in (1..1000000) %}x{% endfor %}{% endfor %}",
      "{% include 'loop' %}",
      "{% assign a = 'xxxxxxxxxx' %}{% for i in (1..40) %}{% assign a = a | append: a %}{% endfor %}{{ a }}",
    ];
    const running = Promise.all(bombs.map((html) => preview({ html, text: "still here" })));
    const health = stage.call("GET", "/healthz");
    const first = await Promise.race([health, running]);
    assert.ok("status" in first, "the service answers while they run");
    assert.equal(first.status, 200);
    for (const { body } of await running) {
      assert.equal(body.text, "still here");
      assert.equal(body.errors[0].part, "html");
      assert.equal(body.errors[0].reason, "limit", JSON.stringify(body.errors));
    }
  });

  test("variables named like members of objects are data", async () => {
    const text = "[{{ __proto__.polluted }}][{{ constructor.name }}][{{ a.__proto__.b }}]";
    const json =
      '{"__proto__":{"polluted":"1"},"constructor":{"name":"c"},"a":{"__proto__":{"b":2}}}';
    const body = `{"source":{"text":${JSON.stringify(text)}},"variables":${json}}`;
    const answer = await stage.call("POST", "/api/v1/templates/x/preview", body, {
      "Content-Type": "application/json",
    });
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.body.text, /^\[1?\]\[c\]\[2?\]$/);
    assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
    const after = await preview({ text: "[{{ polluted }}]" });
    assert.equal(after.body.text, "[]");
  });

  test("too large sources are refused, and kept renderings are bounded", async () => {
    const large = await stage.call("POST", "/api/v1/templates/new/preview", {
      source: { html: "x".repeat(1024 * 1024 + 1) },
    });
    assert.equal(large.status, 400);
    const first = (await preview({ html: "first" })).body.html_path;
    for (let count = 0; count < 16; count += 1) await preview({ html: `${count}` });
    assert.equal((await stage.call("GET", first)).status, 404);
  });
});

test("an error of a partial has its name and the line in it", () => {
  const engine = new TemplateEngine("text");
  const partials = new Map([["part", { id: "part/@1.text", source: "a\n{{ n | shout }}" }]]);
  const source = { id: "", source: "{% include 'part' %}", partials };
  assert.throws(() => engine.render(source, {}, 1_000), {
    name: "TemplateError",
    place: { line: 2, column: 1, partial: "part" },
  });
});

test("drafts are for managers, and their HTML for the one who rendered it", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const bearer = (sub: string, scope: string): Record<string, string> => {
    const encode = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { sub, scope, exp: Math.floor(Date.now() / 1000) + 600 };
    const text = `${encode({ alg: "HS256", typ: "at+jwt" })}.${encode(claims)}`;
    const signature = createHmac("sha256", secret).update(text).digest("base64url");
    return { authorization: `Bearer ${text}.${signature}` };
  };
  const stage = await startStage({ jwt_secret: secret, from_domain: "shop.example" });
  const body = { source: { html: "x" } };
  const path = "/api/v1/templates/new/preview";
  const refused = await stage.call("POST", path, body, bearer("shop", "notify:send"));
  assert.equal(refused.status, 403);
  const allowed = await stage.call("POST", path, body, bearer("boss", "notify:manage"));
  assert.equal(allowed.status, 200, allowed.text);
  const { html_path: htmlPath } = allowed.body;
  const own = await stage.call("GET", htmlPath, undefined, bearer("boss", "notify:manage"));
  assert.equal(own.status, 200);
  const other = await stage.call("GET", htmlPath, undefined, bearer("other", "notify:manage"));
  assert.equal(other.status, 404);
  await stage.close();
});
