// The sign-out page.
import { button } from "./form.ts";
import { html } from "./html.ts";
import { carryCsrf, showPage, type PageServices } from "./page-services.ts";
import { withQuery, type PageRoute } from "./route.ts";

export function createSignOutRoutes(services: PageServices): PageRoute[] {
  const path = "/sign-out";
  return [
    {
      method: "GET",
      path,
      access: "signed-in",
      handle: (request) => {
        const { signOut } = request.language.messages;
        const body = html`<p>${signOut.text}</p>
          <form method="post" action="${path}">
            ${carryCsrf(request)}
            <div class="row">
              ${button(signOut.submit)}<a class="button quiet" href="/account">${signOut.stay}</a>
            </div>
          </form>`;
        return showPage(services, request, { title: signOut.title, body });
      },
    },
    {
      method: "POST",
      path,
      access: "signed-in",
      handle: async (request) => {
        await services.credentials.endSession(request.user.session.id);
        request.cookies.push(services.cookies.format("platform_session", "", 0));
        return { kind: "redirect", to: withQuery("/sign-in", { done: "signed-out" }) };
      },
    },
  ];
}
