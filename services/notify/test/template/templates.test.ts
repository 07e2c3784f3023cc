// Templates over the API: Liquid, versions, language variants, limits.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import PostalMime from "postal-mime";
import { STAGE_KINDS, startStage, startStageOn, type Answer, type Stage } from "../stage.ts";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`templates on ${kind}`, { skip: skip ?? false }, () => {
    let stage: Stage;
    before(async () => {
      stage = await startStageOn({ ...(await prepare()), from_domain: "shop.example" });
    });
    after(() => stage.close());

    const save = (name: string, content: object): Promise<Answer> =>
      stage.call("POST", "/api/v1/templates", { name, ...content });
    const preview = (name: string, body: object): Promise<Answer> =>
      stage.call("POST", `/api/v1/templates/${name}/preview`, body);

    test("a template with loops and conditions is saved, read and sent", async () => {
      const saved = await save("order", {
        subject: "Order {{ order.id }}",
        html: "{% if user.vip %}<b>VIP</b>{% endif %}<ul>{% for item in order.items %}<li>{{ item.name }}: {{ item.count }}</li>{% endfor %}</ul>",
      });
      assert.equal(saved.status, 201);
      assert.deepEqual(saved.body, { status: "created", name: "order", version: 1 });
      const read = await stage.call("GET", "/api/v1/templates/order");
      assert.equal(read.body.subject, "Order {{ order.id }}");
      assert.deepEqual(read.body.variables, ["order.id", "order.items", "user.vip"]);
      const sent = await stage.call("POST", "/api/v1/send/template", {
        template: "order",
        to: "ada@example.org",
        variables: {
          user: { vip: true },
          order: { id: 17, items: [{ name: "Tea & <Milk>", count: 2 }] },
        },
      });
      assert.equal(sent.status, 200, sent.text);
      assert.equal(sent.body.template, "order");
      const raw = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}/raw`);
      const mail = await PostalMime.parse(raw.text);
      assert.equal(mail.subject, "Order 17");
      assert.match(mail.html!, /<b>VIP<\/b><ul><li>Tea &amp; &lt;Milk&gt;: 2<\/li><\/ul>/);
      assert.match(mail.text!, /VIP\s+\* Tea & <Milk>: 2/, "a text part is generated");
    });

    test("values are escaped in HTML, and not in subject and text", async () => {
      await save("escape", { subject: "{{ x }}", html: "<p>{{ x }}</p>", text: "{{ x }}" });
      const { body } = await preview("escape", { variables: { x: "<b>&" } });
      assert.deepEqual(body, {
        subject: "<b>&",
        html: "<p>&lt;b&gt;&amp;</p>",
        text: "<b>&",
        warnings: [],
      });
    });

    test("partials and layouts come from the store", async () => {
      await save("base", { html: "<main>{% block content %}{% endblock %}</main>" });
      await save("greeting", { html: "Hello {{ name }}", text: "Hello {{ name }}" });
      await save("page", {
        html: '{% layout "base" %}{% block content %}{% render "greeting", name: user.name %}{% endblock %}',
        text: "{% render 'greeting', name: user.name %}!",
      });
      const first = await preview("page", { variables: { user: { name: "Ada" } } });
      assert.equal(first.body.html, "<main>Hello Ada</main>", first.text);
      assert.equal(first.body.text, "Hello Ada!");
      await save("greeting", { html: "Hi {{ name }}", text: "Hi" });
      const second = await preview("page", { variables: { user: { name: "Ada" } } });
      assert.equal(second.body.html, "<main>Hi Ada</main>", "a changed partial is used at once");
      const missing = await save("lonely", { html: '{% render "/etc/passwd" %}' });
      assert.equal(missing.status, 201);
      const failed = await preview("lonely", {});
      assert.equal(failed.status, 422);
      assert.equal(failed.body.code, "template_failed");
    });

    test("versions are kept and restored", async () => {
      await save("versions", { subject: "one", text: "1" });
      await save("versions", { subject: "two", text: "2" });
      const list = await stage.call("GET", "/api/v1/templates/versions/versions");
      assert.deepEqual(
        list.body.versions.map((one: { version: number; active: boolean }) => [
          one.version,
          one.active,
        ]),
        [
          [2, true],
          [1, false],
        ],
      );
      const restored = await stage.call("POST", "/api/v1/templates/versions/restore", {
        version: 1,
      });
      assert.equal(restored.body.version, 3);
      const { body } = await preview("versions", {});
      assert.equal(body.subject, "one");
    });

    test("language variants fall back to the language, then to the default", async () => {
      await save("hello", { text: "Hello" });
      await save("hello", { locale: "de", text: "Hallo" });
      await save("hello", { locale: "de-AT", text: "Servus" });
      const read = async (locale: string): Promise<string> =>
        (await preview("hello", { locale })).body.text;
      assert.equal(await read("de-AT"), "Servus");
      assert.equal(await read("de-CH"), "Hallo");
      assert.equal(await read("fr"), "Hello");
    });

    test("missing variables are warnings, and errors in strict mode", async () => {
      await save("strict", { text: "{{ user.name }} {{ user.city }}" });
      const variables = { user: { name: "Ada" } };
      const lenient = await preview("strict", { variables });
      assert.deepEqual(lenient.body.warnings, ["the variable user.city is missing"]);
      const refused = await preview("strict", { variables, strict: true });
      assert.equal(refused.status, 422);
      assert.match(refused.body.detail, /user\.city is missing/);
      const sent = await stage.call("POST", "/api/v1/send/template", {
        template: "strict",
        to: "ada@example.org",
        variables,
      });
      assert.deepEqual(sent.body.warnings, ["the variable user.city is missing"]);
    });

    test("a test send has a mark in its subject", async () => {
      await save("try", { subject: "Hello", text: "Hello" });
      const sent = await stage.call("POST", "/api/v1/templates/try/test", {
        to: "ada@example.org",
      });
      assert.equal(sent.status, 200, sent.text);
      const { body } = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}`);
      assert.equal(body.subject, "[Test] Hello");
    });

    test("mistakes are refused with their place", async () => {
      const broken = await save("broken", { html: "line\n{% if x %}" });
      assert.equal(broken.status, 422);
      assert.match(broken.body.detail, /Template broken, html: .*line:2/);
      const dynamic = await save("dynamic", { html: "{% render name %}" });
      assert.equal(dynamic.status, 422);
      assert.match(dynamic.body.detail, /must be quoted/);
      const filter = await save("filter", { html: "{{ x | nosuchfilter }}" });
      assert.equal(filter.status, 422);
      assert.equal((await save("../x", { text: "x" })).status, 400);
      assert.equal((await save("empty", { subject: "x" })).status, 400);
      assert.equal((await stage.call("GET", "/api/v1/templates/nosuch")).status, 404);
      const send = { template: "nosuch", to: "ada@example.org" };
      assert.equal((await stage.call("POST", "/api/v1/send/template", send)).status, 404);
      assert.equal((await stage.call("DELETE", "/api/v1/templates/try")).status, 204);
      assert.equal((await stage.call("GET", "/api/v1/templates/try")).status, 404);
    });

    test("line breaks of a variable in the subject are refused", async () => {
      await save("inject", { subject: "Hi {{ name }}", text: "x" });
      const { status, body } = await stage.call("POST", "/api/v1/send/template", {
        template: "inject",
        to: "ada@example.org",
        variables: { name: "Ada\r\nBcc: eve@example.org" },
      });
      assert.equal(status, 400);
      assert.match(body.detail, /subject/);
    });
  });
}

describe("rendering, which no database takes part in", () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage();
  });
  after(() => stage.close());

  const save = (name: string, content: object): Promise<Answer> =>
    stage.call("POST", "/api/v1/templates", { name, ...content });
  const preview = (name: string, body: object): Promise<Answer> =>
    stage.call("POST", `/api/v1/templates/${name}/preview`, body);

  test("templates that never end, grow or recurse are stopped", async () => {
    const cases: [name: string, text: string, reason: RegExp][] = [
      [
        "loop",
        "{% for a in (1..100000000) %}{% for b in (1..100000000) %}x{% endfor %}{% endfor %}",
        /memory|time/,
      ],
      [
        "slow",
        "{% for a in (1..3000) %}{% for b in (1..3000) %}{% assign c = b %}{% endfor %}{% endfor %}",
        /memory|time/,
      ],
      [
        "grow",
        "{% assign a = 'xxxxxxxxxx' %}{% for i in (1..40) %}{% assign a = a | append: a %}{% endfor %}{{ a }}",
        /memory|characters/,
      ],
      ["recurse", "{% render 'recurse' %}", /deeply|time/],
    ];
    for (const [name, text, reason] of cases) {
      await save(name, { text });
      const startMs = performance.now();
      const { status, body } = await preview(name, {});
      assert.equal(status, 422, name);
      assert.match(body.detail, reason, name);
      assert.ok(performance.now() - startMs < 30_000, name);
    }
  });

  test("a template that takes long does not hold up other requests", async () => {
    await save("long", {
      text: "{% for a in (1..1500) %}{% for b in (1..1500) %}{% if b == a %}{{ a }}{% endif %}{% endfor %}{% endfor %}",
    });
    await save("short", { text: "Hello {{ name }}" });
    // The first rendering loads what all need.
    await preview("short", { variables: { name: "Ada" } });
    const ended: string[] = [];
    const long = preview("long", {}).finally(() => ended.push("long"));
    for (let count = 0; count < 3; count += 1) {
      const { body } = await preview("short", { variables: { name: "Ada" } });
      assert.equal(body.text, "Hello Ada");
    }
    assert.deepEqual(ended, []);
    const { status, body } = await long;
    if (status === 200) assert.match(body.text, /^123.*1500$/);
    else assert.match(body.detail, /limit of time/);
  });

  test("variables cannot reach prototypes", async () => {
    await save("proto", { text: "[{{ x.constructor.name }}{{ x.__proto__ }}{{ __proto__ }}]" });
    const { body } = await preview("proto", { variables: { x: {} } });
    assert.equal(body.text, "[]");
  });
});

test("previews and test sends have an unsubscribe link that changes nothing", async () => {
  const stage = await startStage();
  const template = {
    name: "news",
    subject: "News",
    html: "<a href='{{ unsubscribe_url }}'>stop</a>",
  };
  await stage.call("POST", "/api/v1/templates", template);
  const preview = await stage.call("POST", "/api/v1/templates/news/preview", {});
  assert.equal(preview.status, 200, preview.text);
  assert.deepEqual(preview.body.warnings, []);
  const to = "ada@example.org";
  const sent = await stage.call("POST", "/api/v1/templates/news/test", { to });
  const mail = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}`);
  for (const html of [preview.body.html, mail.body.html] as string[]) {
    const [, path = ""] = /mail\.test\/notify(\/unsubscribe\/[^']+)/.exec(html)!;
    const page = await stage.call("GET", path);
    assert.equal(page.status, 200);
    assert.match(page.text, /reader@example\.org|reader&#64;example/);
    const done = await stage.call("POST", path, "List-Unsubscribe=One-Click", {
      "Content-Type": "application/x-www-form-urlencoded",
    });
    assert.equal(done.status, 200);
  }
  assert.deepEqual((await stage.call("GET", "/api/v1/suppression")).body.addresses, []);
  const own = { variables: { unsubscribe_url: "https://x.example/" } };
  const chosen = await stage.call("POST", "/api/v1/templates/news/preview", own);
  assert.match(chosen.body.html, /https:\/\/x\.example/);
});
