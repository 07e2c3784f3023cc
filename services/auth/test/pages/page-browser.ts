// A browser without scripts for the pages: keeps cookies, sends what browsers send, submits forms, follows redirects.
import { CookieJar } from "../cookie-jar.ts";
import type { Stage } from "../stage.ts";

const redirectsMax = 10;

/** A page, or the address outside where the browser was sent. */
export interface Page {
  url: URL;
  status: number;
  headers: Headers;
  text: string;
}

/** One form of a page. */
interface PageForm {
  action: string;
  fields: URLSearchParams;
}

/** One browser profile. */
export class PageBrowser {
  readonly #site: string;
  /** Where the service listens; `site` is what it is known by. */
  readonly #address: string;
  readonly #cookies = new CookieJar();
  readonly #language: string;

  constructor(stage: Pick<Stage, "url" | "publicUrl">, language = "en") {
    this.#site = stage.publicUrl;
    this.#address = stage.url;
    this.#language = language;
  }

  /** Opens a path of the site or an address, and follows redirects within the site. */
  open(path: string | URL): Promise<Page> {
    return this.#go("GET", new URL(path, this.#site));
  }

  /** Submits the form of the page that is posted to `action` (the first by default), with more fields. */
  submit(page: Page, more: Record<string, string> = {}, action?: string): Promise<Page> {
    const form = readForms(page.text).find(
      (item) => action === undefined || item.action === action,
    );
    if (form === undefined) throw new Error(`no form ${action} on ${page.url.href}:\n${page.text}`);
    for (const [name, value] of Object.entries(more)) form.fields.set(name, value);
    return this.post(new URL(form.action, page.url), form.fields);
  }

  /** Posts a form, with other headers where they are given. */
  post(
    path: string | URL,
    fields: URLSearchParams | Record<string, string>,
    headers?: Record<string, string>,
  ): Promise<Page> {
    return this.#go("POST", new URL(path, this.#site), new URLSearchParams(fields), headers);
  }

  /** The value of a cookie. */
  readCookie(name: string): string | undefined {
    return this.#cookies.read(name);
  }

  /** Puts another value into a cookie, or removes it. */
  setCookie(name: string, value: string | undefined): void {
    this.#cookies.set(name, value);
  }

  async #go(
    method: string,
    url: URL,
    body?: URLSearchParams,
    headers?: Record<string, string>,
  ): Promise<Page> {
    let next: { method: string; url: URL; body?: URLSearchParams } =
      body === undefined ? { method, url } : { method, url, body };
    for (let step = 0; step < redirectsMax; step += 1) {
      if (next.url.origin !== this.#site) {
        return { url: next.url, status: 0, headers: new Headers(), text: "" };
      }
      const response = await this.#send(next.method, next.url, next.body, headers);
      const text = await response.text();
      const forward = /<meta http-equiv="refresh" content="0; url=([^"]*)"/.exec(text)?.[1];
      const location = response.headers.get("location") ?? forward?.replaceAll("&amp;", "&");
      if (location === undefined) {
        return { url: next.url, status: response.status, headers: response.headers, text };
      }
      next = { method: "GET", url: new URL(location, next.url) };
    }
    throw new Error(`too many redirects at ${next.url.href}`);
  }

  async #send(
    method: string,
    url: URL,
    body?: URLSearchParams,
    headers?: Record<string, string>,
  ): Promise<Response> {
    const cookie = this.#cookies.format(url);
    const response = await fetch(new URL(url.pathname + url.search, this.#address), {
      method,
      redirect: "manual",
      headers: {
        Accept: "text/html",
        "Accept-Language": this.#language,
        ...(cookie === "" ? {} : { Cookie: cookie }),
        ...(method === "POST" ? { Origin: this.#site, "Sec-Fetch-Site": "same-origin" } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    this.#cookies.keep(response);
    return response;
  }
}

/** A page's text without its tags, for what people read. */
export function readText(page: Page): string {
  return page.text
    .replaceAll(/<(?:head|script)[^]*?<\/(?:head|script)>/g, " ")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ");
}

function readForms(html: string): PageForm[] {
  return [...html.matchAll(/<form[^>]*action="([^"]*)"[^>]*>([^]*?)<\/form>/g)].map(
    ([, action, content]) => {
      const fields = new URLSearchParams();
      for (const [input] of content!.matchAll(/<input[^>]*>/g)) {
        const name = /name="([^"]*)"/.exec(input)?.[1];
        if (name !== undefined) fields.set(name, unescapeHtml(/value="([^"]*)"/.exec(input)?.[1]));
      }
      return { action: unescapeHtml(action), fields };
    },
  );
}

function unescapeHtml(text = ""): string {
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}
