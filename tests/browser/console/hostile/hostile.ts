// A page whose services answer with hostile text in every field: what a person, a program or a stranger could have written.
// Services refuse such text in many fields, so that it is added on its way to the page; the page must not rely on them.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Page, Route, WebSocketRoute } from "playwright-core";
import { goTo, PATIENCE_MS, type ConsolePage } from "../chromium.ts";

/** Texts that run if a page treats them as HTML, an address, a template, or a part of a script. */
const PAYLOADS = [
  `<img src=x onerror="globalThis.ran=1">`,
  `<script>globalThis.ran=1</script>`,
  `"><svg onload=globalThis.ran=1>`,
  `' autofocus onfocus=globalThis.ran=1 x='`,
  `</textarea></title></style><iframe srcdoc="<script>parent.ran=1</script>">`,
  `javascript:globalThis.ran=1//`,
  "${globalThis.ran=1}{{globalThis.ran=1}}",
];
const PAYLOAD = PAYLOADS.join(" ");
/** Addresses that would run or leave the console. */
const ADDRESSES = [`javascript:globalThis.ran=1`, `//evil.example/`, `data:text/html,${PAYLOAD}`];
const SHOWN = PAYLOADS[0]!;
/** Members by which the page finds its parts; a feed without them is no feed. */
const STRUCTURE = new Set([
  "type",
  "service",
  "level",
  "unit",
  "base",
  "mode",
  "sign_in",
  "features",
  "channel",
]);
const TIME = /^\d{4}-\d\d-\d\dT/;

/** Loads a page again, with the payload in every text that the services send to it. A dialog that opens is a report. */
export async function poison(
  t: Pick<TestContext, "after">,
  { page, reports }: ConsolePage,
): Promise<void> {
  // Answers with the payload are not for another test.
  t.after(() => page.close());
  page.on("dialog", () => reports.push("a dialog opened"));
  await page.route(/\/(?:api\/v1|admin)\//, poisonAnswer);
  await page.routeWebSocket(/\/console\/live|\/ws(?:[/?]|$)/, poisonSocket);
  await page.reload();
  await page.locator("main#content.body").waitFor();
}

/** A text as a poisoned answer has it. */
export function withPayload(text: string): string {
  return text + PAYLOAD;
}

/** Ends `poison`: a screen may still wait for an answer. */
export async function stopPoison(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function poisonAnswer(route: Route): Promise<void> {
  const request = route.request();
  // The page asks for what it was told: services know it without the payload.
  const url = clean(request.url());
  const body = request.postData();
  const answer = await route.fetch({ url, ...(body === null ? {} : { postData: clean(body) }) });
  const type = answer.headers()["content-type"] ?? "";
  if (!type.includes("json")) {
    await route.fulfill({ response: answer });
    return;
  }
  const text = JSON.stringify(poisonValue(JSON.parse(await answer.text()), ""));
  await route.fulfill({ response: answer, body: text });
}

function poisonSocket(socket: WebSocketRoute): void {
  const server = socket.connectToServer();
  server.onMessage((message) => {
    const text = String(message);
    socket.send(text.startsWith("{") ? JSON.stringify(poisonValue(JSON.parse(text), "")) : text);
  });
}

function clean(text: string): string {
  const forms = [
    PAYLOAD,
    encodeURIComponent(PAYLOAD),
    new URLSearchParams({ a: PAYLOAD }).toString().slice(2),
  ];
  forms.push(JSON.stringify(PAYLOAD).slice(1, -1));
  return forms.reduce((left, form) => left.replaceAll(form, ""), text);
}

function poisonValue(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((one) => poisonValue(one, name));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, poisonValue(one, key)]),
    );
  }
  if (typeof value !== "string" || STRUCTURE.has(name) || TIME.test(value)) return value;
  if (name === "href") return ADDRESSES[value.length % ADDRESSES.length];
  return withPayload(value);
}

/** Opens a screen, its first row, and what that shows; asserts that the text is shown and that none of it has run. */
export async function checkScreen(console: ConsolePage, path: string): Promise<void> {
  const { page } = console;
  await goTo(console, path);
  await checkHarmless(console, path);
  const row = page
    .locator("main :is(tr, button)[data-row]:visible, main .tail-row:visible")
    .first();
  if ((await row.count()) === 0) return;
  await row.click({ position: { x: 4, y: 4 } });
  await page.locator("main .loading").first().waitFor({ state: "detached" });
  await checkHarmless(console, `${path}, its first row`);
}

/** Asserts that no text of a service has run, became an element, or an address that is opened. */
export async function checkHarmless({ page, reports }: ConsolePage, what: string): Promise<void> {
  const endsMs = performance.now() + PATIENCE_MS;
  while (!String(await page.evaluate(READ_TEXT)).includes(SHOWN)) {
    assert.ok(performance.now() < endsMs, `${what}: the text is not shown as it is`);
    await page.waitForTimeout(50);
  }
  assert.equal(await page.evaluate("globalThis.ran"), undefined, `${what}: it ran`);
  const elements = await page
    .locator("img[src='x'], iframe[srcdoc], main script, svg[onload]")
    .count();
  assert.equal(elements, 0, `${what}: it became an element`);
  const links = await page
    .locator("a[href]")
    .evaluateAll((found) => found.map((one) => (one as unknown as { href: string }).href));
  const origin = new URL(page.url()).origin;
  assert.deepEqual(
    links.filter((href) => !href.startsWith(`${origin}/`)),
    [],
    `${what}: links`,
  );
  assert.deepEqual(reports, [], `${what}: reports`);
}

/** Visible text, with the values of fields, which are text as well. */
const READ_TEXT = `document.body.innerText + [...document.querySelectorAll("input, textarea")].map((one) => one.value).join(" ")`;
