// Tags and filters of standard Liquid (https://shopify.github.io/liquid/), and values that never reach a mail.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { TemplateEngine, TemplateError } from "../../src/template/engine.ts";
import { startStage, type Stage } from "../stage.ts";

const PARTIALS = new Map(
  Object.entries({ x: "[{{ x.n }}{{ forloop.index }}]", "mail/row": "({{ row.n }})" }).map(
    ([name, source]) => [name, { id: name, source }],
  ),
);
const VARIABLES = {
  items: [
    { n: "a", v: 1 },
    { n: "b", v: 2 },
    { n: "a", v: 3 },
  ],
  h: { a: 1, b: 2 },
  nums: [3, 1, 2, 2],
  text: "  a b  c ",
  huge: Number.POSITIVE_INFINITY,
  own: { first: "x", last: "y", size: "z" },
  empty: {},
  marked: [{ v: 1, mark: true }, { v: 2, mark: null }, { v: 3 }],
  lists: [[1, 2], [3]],
};

const RENDERED: readonly [source: string, expected: string][] = [
  ["{% doc %}about {{ x }} {% if %}{% enddoc %}z", "z"],
  ["{% for i in nums %}{% ifchanged %}{{ i }}{% endifchanged %}{% endfor %}", "312"],
  ["{{ 'a?>' | base64_url_safe_encode }} {{ 'YT8' | base64_url_safe_decode }}", "YT8- a?"],
  ["{% comment %}a{% comment %}b{% endcomment %}c{% endcomment %}z", "z"],
  ["{%- comment -%} x {%- endcomment -%} z", "z"],
  ["y {%- raw -%} {{ a }} {%- endraw -%} z", "y{{ a }}z"],
  ["y {% raw -%} {{ a }} {% endraw %} z", "y {{ a }}  z"],
  ["{% render 'x' for items %}", "[a1][b2][a3]"],
  ["{%- render 'x' for items -%}", "[a1][b2][a3]"],
  ["{% render 'x' for items as x %}{% render 'x' with items[1] %}", "[a1][b2][a3][b]"],
  ["{% render 'mail/row' for items, other: 1 %}", "(a)(b)(a)"],
  [
    "{% for i in (1..2) %}{% for j in (1..2) %}{{ forloop.parentloop.index }}{{ forloop.index }} {% endfor %}{{ forloop.index }}{% endfor %}{{ forloop.parentloop }}",
    "11 12 121 22 2",
  ],
  ["{{ 7 | divided_by: 2 }} {{ -7 | divided_by: 2 }} {{ 7 | divided_by: 2.0 }}", "3 -4 3.5"],
  ["{{ 7.5 | divided_by: 2 }} {{ -7 | modulo: 3 }}", "3.75 2"],
  ["{{ h | size }} {{ h.size }} {{ h | first }} {{ h | last | join: '=' }}", "2 2 a1 "],
  ["{{ h.first }} {{ h.first | join: '=' }} {{ h.first[0] }} {{ h.first.last }}", "a1 a=1 a 1"],
  ["{{ h.last }}|{{ own.first }}{{ own.last }}{{ own.size }}|{{ empty.first }}", "|xyz|"],
  ["{% for pair in h %}{{ pair.first }}{{ pair.last }}{% endfor %}{{ h | size }}", "a1b22"],
  [
    "{{ 7.0 | divided_by: 2 }} {{ 7.0 | plus: 0 | divided_by: 2 }} {{ -7.0 | divided_by: 2 }}",
    "3.5 3.5 -3.5",
  ],
  ["{% assign x = 7.0 | divided_by: 2 %}{{ x }} {{ '7.0' | size | divided_by: 2 }}", "3.5 1"],
  ["{{ 7 | divided_by: 2 }}{{ 7.5 }}{{ 9 | divided_by: 2 }}", "37.54"],
  [
    "{{ huge.x }}|{% if huge %}1{% endif %}|{{ huge | times: 2 }}|{{ 'a' | append: huge }}",
    "|1||a",
  ],
  ["{{ nums | size }} {{ nums | first }} {{ 'abc' | size }} {{ nums | last }}", "4 3 3 2"],
  ["{{ items | uniq: 'n' | map: 'v' | join: ',' }} {{ nums | uniq | join }}", "1,2 3 1 2"],
  ["{{ items | compact: 'n' | map: 'v' | join: ',' }}", "1,2,3"],
  ["{{ marked | compact: 'mark' | map: 'v' | join: ',' }}", "1"],
  ["{{ lists | join: '-' }} {{ 'a,b' | split: ',' | join }}", "1-2-3 a b"],
  [
    "{{ '7.0' | divided_by: 2 }} {{ 7 | divided_by: '2.0' }} {{ '7' | divided_by: 2 }}",
    "3.5 3.5 3",
  ],
  [
    "{{ '<&' | escape }} {{ '<' | h }} {{ '1 &lt; 2 & 3' | escape_once }}",
    "&lt;&amp; &lt; 1 &lt; 2 &amp; 3",
  ],
  ["{{ 0.1 | plus: 0.2 }} {{ 1.1 | times: 3 }} {{ 10 | divided_by: 4.0 }}", "0.3 3.3 2.5"],
  ["{{ items | where: 'n', 'a' | map: 'v' | join: ',' }} {{ items | sum: 'v' }}", "1,3 6"],
  ["{{ text | split: ' ' | join: '|' }} {{ 'a,b,,' | split: ',' | size }}", "a|b|c 2"],
  [
    "{% for i in nums %}{% cycle 'g': 'a','b' %}{% cycle 'h': 'x','y','z' %}{% endfor %}",
    "axbyazbx",
  ],
  [
    "{% tablerow i in nums cols:2 %}{{ i }}{% endtablerow %}",
    '<tr class="row1">\n<td class="col1">3</td><td class="col2">1</td></tr>\n<tr class="row2"><td class="col1">2</td><td class="col2">2</td></tr>\n',
  ],
  ["{{ h }}|{{ items }}|{{ 'a' | append: h }}|{{ h | raw }}|{{ items | join: '' }}", "||a||"],
  ["{{ huge }}|{{ huge | plus: 1 }}|{{ huge | json }}", "||null"],
];

for (const format of ["text", "html"] as const) {
  const engine = new TemplateEngine(format);
  const render = (source: string) =>
    engine.render({ id: "", source, partials: PARTIALS }, VARIABLES, 1_000);
  for (const [source, expected] of RENDERED) {
    test(`${source} in ${format}`, () => {
      engine.check(source);
      assert.equal(render(source), expected);
    });
  }
  test(`unclosed tags, unknown filters and divisions by zero are errors in ${format}`, () => {
    for (const source of [
      "{% comment %}{% comment %}{% endcomment %}",
      "{% doc %}",
      "{% ifchanged %}",
      "{{ 1 | nope }}",
      "{{ 1 | divided_by: 0 }}",
      "{{ 1.5 | divided_by: 0.0 }}",
      "{{ 1 | modulo: 0 }}",
    ]) {
      assert.throws(() => render(source), TemplateError, source);
    }
  });
}

describe("values without a text", () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage();
    const template = {
      name: "order",
      subject: "Order {{ order }}",
      text: "{{ order.id }} {{ x }}",
    };
    await stage.call("POST", "/api/v1/templates", template);
    const number = { name: "number", subject: "Order", text: "{{ order.id }} {{ x }}" };
    await stage.call("POST", "/api/v1/templates", number);
  });
  after(() => stage.close());
  const send = (strict: boolean) =>
    stage.call("POST", "/api/v1/send/template", {
      template: "order",
      to: "ada@example.org",
      variables: { order: { id: 17 }, x: "y" },
      strict,
    });

  test("are empty, with a warning", async () => {
    const sent = await send(false);
    assert.equal(sent.status, 200, sent.text);
    assert.match(sent.text, /subject: an object has no text and was left out/);
    const mail = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}/raw`);
    assert.match(mail.text, /^Subject: Order\r$/m);
    const preview = await stage.call("POST", "/api/v1/templates/order/preview", {
      variables: { order: { id: 17 }, x: "y" },
    });
    assert.match(JSON.stringify(preview.body.warnings), /an object has no text/);
  });

  test("numbers without a text are left out, with a warning and an error in strict mode", async () => {
    for (const strict of [false, true]) {
      // JSON.parse reads it as Infinity.
      const body = `{"variables":{"order":{"id":1},"x":1e999},"strict":${strict}}`;
      const answer = await stage.call("POST", "/api/v1/templates/number/preview", body, {
        "content-type": "application/json",
      });
      assert.equal(answer.status, strict ? 422 : 200, answer.text);
      assert.match(answer.text, /a number that is infinite or undefined/);
      assert.doesNotMatch(answer.text, /Infinity|NaN/);
    }
  });

  test("are an error in strict mode", async () => {
    const refused = await send(true);
    assert.equal(refused.status, 422, refused.text);
    assert.match(refused.body.detail, /an object has no text/);
  });
});
