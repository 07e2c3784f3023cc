// A browser without scripts: keeps cookies, follows redirects, submits forms.
import { CookieJar } from "./cookie-jar.ts";

/** The end of a series of redirects. */
export interface Landing {
  url: URL;
  status: number;
  text: string;
}

/** Sends a request as `fetch` does. */
export type BrowserFetch = (
  url: URL,
  init: {
    method: string;
    redirect: "manual";
    headers: Record<string, string>;
    body?: URLSearchParams;
  },
) => Promise<Response>;

const REDIRECTS_MAX = 15;

/** One browser profile. */
export class Browser {
  readonly #cookies = new CookieJar();
  readonly #node: string | undefined;
  readonly #fetch: BrowserFetch;

  /** `node` is used instead of the host in URLs: the same site on another node; `send` instead of `fetch`. */
  constructor(node?: string, send: BrowserFetch = fetch) {
    this.#node = node;
    this.#fetch = send;
  }

  /** Opens the URL and follows redirects to a page or to a URL that satisfies `isDone`. */
  async open(url: string | URL, isDone: (url: URL) => boolean = () => false): Promise<Landing> {
    let next: { url: URL; method: string; body?: URLSearchParams } = {
      url: new URL(url),
      method: "GET",
    };
    for (let step = 0; step < REDIRECTS_MAX; step += 1) {
      if (isDone(next.url)) return { url: next.url, status: 0, text: "" };
      const response = await this.#send(next.url, next.method, next.body);
      const location = response.headers.get("location");
      const text = await response.text();
      if (location !== null) {
        next = { url: new URL(location, next.url), method: "GET" };
        continue;
      }
      const form = text.includes("document.forms[0].submit()")
        ? readForm(text, next.url)
        : undefined;
      if (form === undefined) return { url: next.url, status: response.status, text };
      next = { url: form.action, method: "POST", body: form.fields };
    }
    throw new Error("too many redirects");
  }

  /** Posts a form that no page has shown. */
  async post(url: string, fields: Record<string, string>): Promise<Landing> {
    const response = await this.#send(new URL(url), "POST", new URLSearchParams(fields));
    return { url: new URL(url), status: response.status, text: await response.text() };
  }

  /** Submits the form of a page, with more fields. */
  async submit(
    page: Landing,
    more: Record<string, string>,
    isDone?: (url: URL) => boolean,
  ): Promise<Landing> {
    const form = readForm(page.text, page.url);
    if (form === undefined) throw new Error(`no form on ${page.url.href}: ${page.text}`);
    for (const [name, value] of Object.entries(more)) form.fields.set(name, value);
    const response = await this.#send(form.action, "POST", form.fields);
    const location = response.headers.get("location");
    const text = await response.text();
    if (location === null) return { url: form.action, status: response.status, text };
    return this.open(new URL(location, form.action), isDone);
  }

  /** Sends a POST request without a body, as a script of the page does. */
  call(url: URL): Promise<Response> {
    return this.#send(url, "POST", undefined, { origin: url.origin });
  }

  async #send(
    url: URL,
    method: string,
    body?: URLSearchParams,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const cookie = this.#cookies.format(url);
    const target = this.#node === undefined ? url : new URL(url.pathname + url.search, this.#node);
    const response = await this.#fetch(target, {
      method,
      redirect: "manual",
      headers: { accept: "text/html", ...(cookie === "" ? {} : { cookie }), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    this.#cookies.keep(response);
    return response;
  }
}

function readForm(html: string, base: URL): { action: URL; fields: URLSearchParams } | undefined {
  const form = /<form[^>]*action="([^"]*)"[^>]*>/.exec(html);
  if (form === null) return undefined;
  const fields = new URLSearchParams();
  for (const [input] of html.matchAll(/<input[^>]*>/g)) {
    const name = /name="([^"]*)"/.exec(input)?.[1];
    if (name !== undefined) fields.set(name, /value="([^"]*)"/.exec(input)?.[1] ?? "");
  }
  return { action: new URL(form[1]!.replaceAll("&amp;", "&"), base), fields };
}
