// Page routes and their responses.
import type { PageSources } from "../web/security-headers.ts";
import type { Html } from "./html.ts";
import type { PageRequest, CurrentUser } from "./page-request.ts";

/** The response of a handler. */
export type PageResponse =
  | {
      kind: "page";
      page: Html;
      status?: number;
      retryAfter?: string | undefined;
      sources?: PageSources;
    }
  /** 303 to a path of this service, or to a URL from the OAuth core. */
  | { kind: "redirect"; to: string }
  | { kind: "json"; body: unknown }
  /** A picture whose address changes with its content. */
  | { kind: "picture"; type: string; content: Buffer };

/** Fields of a form; empty fields are absent. */
export type Form = ReadonlyMap<string, string>;

/** A page or a form. `{id}` as the last segment matches `[\w-]{1,64}`. */
export type PageRoute = { readonly method: "GET" | "POST"; readonly path: string } & (
  | {
      readonly access: "public";
      readonly handle: (request: PageRequest, form: Form) => Promise<PageResponse> | PageResponse;
    }
  /**
   * `fresh` requires a sign-in or confirmation within the last ten minutes, `strong` also a second factor if the user
   * has one or a passkey.
   */
  | {
      readonly access: "signed-in" | "fresh" | "strong";
      readonly handle: (
        request: SignedInRequest,
        form: Form,
      ) => Promise<PageResponse> | PageResponse;
    }
);

/** A request of a signed-in user. */
export type SignedInRequest = PageRequest & { readonly user: CurrentUser };

/** The path to continue at after a sign-in: only paths of this service, to prevent open redirects. */
export function readContinue(text: string | null | undefined): string | undefined {
  const isOurs = /^\/(?:account(?:\/[a-z-]{1,32}){0,2}|interaction\/[\w-]{1,64})$/.test(text ?? "");
  return isOurs ? (text ?? undefined) : undefined;
}

/** A path with the defined parameters as its query. */
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
