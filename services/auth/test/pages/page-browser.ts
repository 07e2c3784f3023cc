// A browser without scripts for the pages: cookies, headers, forms, redirects.
import { CookieJar } from "@platform/testing/cookie-jar";
import type { Stage } from "../stage.ts";

const REDIRECTS_MAX = 10;

/** A page, or the external URL that the browser was sent to. */
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
  /** The service's address; `site` is its public URL. */
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

  /** Submits the form with this `action` (the first by default) with additional fields. */
  submit(page: Page, more: Record<string, string> = {}, action?: string): Promise<Page> {
    const form = readForms(page.text).find(
      (item) => action === undefined || item.action === action,
    );
    if (form === undefined) throw new Error(`no form ${action} on ${page.url.href}:\n${page.text}`);
    for (const [name, value] of Object.entries(more)) form.fields.set(name, value);
    return this.post(new URL(form.action, page.url), form.fields);
  }

  /** Posts a form, optionally with other headers. */
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

  /** Changes a cookie, or deletes it. */
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
    for (let step = 0; step < REDIRECTS_MAX; step += 1) {
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

/** The text of a page without tags. */
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
