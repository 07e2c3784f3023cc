// Signing out of the account pages.
import { button } from "./form.ts";
import { html } from "./html.ts";
import { carryCsrf, showPage, type PageParts } from "./page-parts.ts";
import { withQuery, type PageRoute } from "./route.ts";

/** The routes. */
export function createSignOutRoutes(parts: PageParts): PageRoute[] {
  const path = "/sign-out";
  return [
    {
      method: "GET",
      path,
      access: "signed-in",
      handle: (visit) => {
        const { signOut } = visit.language.messages;
        const body = html`<p>${signOut.text}</p>
          <form method="post" action="${path}">
            ${carryCsrf(visit)}
            <div class="row">
              ${button(signOut.submit)}<a class="button quiet" href="/account">${signOut.stay}</a>
            </div>
          </form>`;
        return showPage(parts, visit, { title: signOut.title, body });
      },
    },
    {
      method: "POST",
      path,
      access: "signed-in",
      handle: async (visit) => {
        await parts.credentials.endSession(visit.visitor.session.id);
        visit.cookies.push(parts.cookies.format("platform_session", "", 0));
        return { kind: "redirect", to: withQuery("/sign-in", { done: "signed-out" }) };
      },
    },
  ];
}
