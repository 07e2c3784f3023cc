// What a page's handler is, and what it answers.
import type { PageSources } from "../web/security-headers.ts";
import type { Html } from "./html.ts";
import type { PageRequest, CurrentUser } from "./page-request.ts";

/** What a handler answers. */
export type PageResponse =
  | {
      kind: "page";
      page: Html;
      status?: number;
      retryAfter?: string | undefined;
      sources?: PageSources;
    }
  /** 303 to a path of ours, or to where the OAuth core says. */
  | { kind: "redirect"; to: string }
  | { kind: "json"; body: unknown };

/** A form's fields; one that is empty is not there. */
export type Form = ReadonlyMap<string, string>;

/** One page or form. `{id}` as the last segment stands for `[\w-]{1,64}`. */
export type PageRoute = { readonly method: "GET" | "POST"; readonly path: string } & (
  | {
      readonly access: "public";
      readonly handle: (request: PageRequest, form: Form) => Promise<PageResponse> | PageResponse;
    }
  /**
   * `fresh` asks those to confirm that it is they who have not signed in for ten minutes, `strong` also those who have a
   * second factor or a passkey and have shown none.
   */
  | {
      readonly access: "signed-in" | "fresh" | "strong";
      readonly handle: (
        request: SignedInRequest,
        form: Form,
      ) => Promise<PageResponse> | PageResponse;
    }
);

/** A request of somebody who is signed in. */
export type SignedInRequest = PageRequest & { readonly user: CurrentUser };

/** Where to after a sign-in: only paths that are ours, so that no link can lead anybody elsewhere. */
export function readContinue(text: string | null | undefined): string | undefined {
  const isOurs = /^\/(?:account(?:\/[a-z-]{1,32}){0,2}|interaction\/[\w-]{1,64})$/.test(text ?? "");
  return isOurs ? (text ?? undefined) : undefined;
}

/** A path with a query of the parameters that are there. */
export function withQuery(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.set(name, value);
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}
