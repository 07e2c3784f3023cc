// An application waits: the page that signs in for it, and the one that asks whether to allow it.
import { reachesAcr } from "../oauth/authorization/prompt-policy.ts";
import type { Interaction, InteractionOutcome } from "../oauth/authorization/interaction.ts";
import { button, hidden } from "./form.ts";
import { html, type Html } from "./html.ts";
import { chooseLanguage, findLanguage } from "./language/language.ts";
import { carryCsrf, goOn, showPage, type PageParts } from "./page-parts.ts";
import { withQuery, type Answer, type Form, type PageRoute } from "./route.ts";
import { showSignIn } from "./sign-in.ts";
import type { Visit, Visitor } from "./visit.ts";

/** The application waits for somebody else than who is signed in. */
const OTHER_REASONS = new Set(["id_token_hint", "claims_id_token_sub_value"]);
/** As long as an interaction may take. */
const LANGUAGE_MS = 3_600_000;
/** A sign-in of before is enough for these; for every other reason it has to be a new one. */
const SILENT_REASONS = new Set(["no_session", "session_ended", "acr_values", "second_factor"]);

/** The routes. */
export function createInteractionRoutes(parts: PageParts): PageRoute[] {
  const path = "/interaction/{id}";
  return [
    { method: "GET", path, access: "public", handle: (visit) => show(parts, visit) },
    {
      method: "POST",
      path,
      access: "public",
      handle: (visit, form) => decide(parts, visit, form),
    },
    {
      method: "GET",
      path: "/device",
      access: "public",
      handle: (visit) => ({
        kind: "redirect",
        to: withQuery("/api/v1/auth/device", {
          user_code: visit.query.get("user_code")?.slice(0, 32),
        }),
      }),
    },
  ];
}

async function show(parts: PageParts, arrived: Visit): Promise<Answer> {
  const interaction = await find(parts, arrived);
  if (interaction === undefined) return parts.errors.showExpired(arrived.language);
  const visit = adoptLanguage(parts, arrived, interaction);
  if (interaction.prompt === "consent") return showConsent(parts, visit, interaction);
  const { visitor } = visit;
  const isNew = visitor !== undefined && visitor.session.authTime >= interaction.startedAt;
  const isForOther = !isNew && interaction.reasons.some((reason) => OTHER_REASONS.has(reason));
  if (visitor === undefined || isForOther) {
    return showSignIn(parts, visit, {
      target: visit.path,
      username: interaction.loginHint,
      client: interaction.client.name,
    });
  }
  if (interaction.prompt === "select_account") {
    return isNew
      ? { kind: "redirect", to: await finish(parts, visit, select(visitor)) }
      : showSelection(parts, visit, visitor, interaction);
  }
  const lack = await findLack(parts, visitor, interaction);
  if (lack?.level === "2" && visitor.session.acr === "2") {
    // More than two factors there is not: the application would ask for ever.
    return { kind: "redirect", to: await finish(parts, visit, { kind: "denied" }) };
  }
  if (lack !== undefined) {
    return {
      kind: "redirect",
      to: withQuery("/confirm", { continue: visit.path, level: lack.level }),
    };
  }
  const to = await finish(parts, visit, { kind: "login", session: visitor.session });
  return { kind: "redirect", to };
}

// The pages on the way to an application are in the language that it asked for.
function adoptLanguage({ cookies }: PageParts, visit: Visit, { uiLocales }: Interaction): Visit {
  const asked = findLanguage(uiLocales ?? "");
  const language = asked ?? chooseLanguage(visit.request.headers["accept-language"]);
  if (language === visit.language) return visit;
  const [tag, ms] = asked === undefined ? ["", 0] : [asked.tag, LANGUAGE_MS];
  visit.cookies.push(cookies.format("platform_language", tag, ms));
  return { ...visit, language };
}

function select({ session }: Visitor): InteractionOutcome {
  return { kind: "selected", session };
}

function showSelection(
  parts: PageParts,
  visit: Visit,
  { account }: Visitor,
  { client }: Interaction,
): Answer {
  const { messages } = visit.language;
  const { selection: words, confirm } = messages;
  const other = withQuery("/sign-in", { continue: visit.path, as: "other" });
  const body = html`<form method="post" action="${visit.path}">
      ${carryCsrf(visit)}
      <div class="row">
        ${button(words.goOnAs(account.username), { name: "decision", value: "select" })}<a
          class="button quiet"
          href="${other}"
          >${confirm.otherAccount}</a
        >
      </div>
    </form>
    <div class="below">
      <form method="post" action="${visit.path}">
        ${carryCsrf(visit)}${button(messages.cancel, { kind: "link", name: "decision", value: "deny" })}
      </form>
    </div>`;
  return showPage(parts, visit, { title: words.title(client.name), body });
}

// What the visitor's session is not yet for this request; undefined where it is enough.
async function findLack(
  { policies }: PageParts,
  { account, session }: Visitor,
  { reasons, startedAt, acrValues, client }: Interaction,
): Promise<{ level: string | undefined } | undefined> {
  const needsSecond =
    (acrValues !== undefined && acrValues !== "" && !reachesAcr(acrValues, session.acr)) ||
    (session.acr !== "2" && (await policies.requires(account.id, client.id)));
  if (needsSecond) return { level: "2" };
  const isNew = session.authTime >= startedAt;
  return isNew || reasons.every((reason) => SILENT_REASONS.has(reason))
    ? undefined
    : { level: undefined };
}

async function showConsent(
  parts: PageParts,
  visit: Visit,
  interaction: Interaction,
): Promise<Answer> {
  if (interaction.isAgreed) {
    return {
      kind: "redirect",
      to: await finish(parts, visit, { kind: "consent", isAsked: false }),
    };
  }
  const account = await parts.users.find(interaction.accountId ?? "");
  if (account === undefined) return parts.errors.showExpired(visit.language);
  const { messages } = visit.language;
  const { consent: words } = messages;
  const { client, scopes, redirectUri } = interaction;
  const descriptions = await describeScopes(parts, messages.scopes, scopes);
  const host = redirectUri === undefined ? "" : (URL.parse(redirectUri)?.host ?? "");
  const links = [
    [words.website, client.uri],
    [words.policy, client.policyUri],
    [words.terms, client.tosUri],
  ] as const;
  const body = html`<p>${words.text(client.name, account.username)}</p>
    ${
      descriptions.length === 0
        ? html`<p>${words.nothing}</p>`
        : html`<p><strong>${words.list}</strong></p>
            <ul class="grants">
              ${descriptions.map((text) => html`<li>${text}</li>`)}
            </ul>`
    }
    <form method="post" action="${visit.path}">
      ${carryCsrf(visit)}${hidden({ shown: fingerprint(interaction) })}
      <div class="row">
        ${button(words.allow, { name: "decision", value: "allow" })}${button(words.deny, { kind: "quiet", name: "decision", value: "deny" })}
      </div>
    </form>
    <div class="below">
      <p class="hint">${host !== "" && `${words.returnTo(host)} `}${words.note}</p>
      ${links.some(([, url]) => isWeb(url)) && html`<p class="hint">${links.map(([text, url]) => isWeb(url) && showLink(text, url!))}</p>`}
    </div>`;
  return showPage(parts, visit, { title: words.title(client.name), body });
}

async function decide(parts: PageParts, visit: Visit, form: Form): Promise<Answer> {
  const interaction = await find(parts, visit);
  if (interaction === undefined) return parts.errors.showExpired(visit.language);
  const decision = form.get("decision");
  if (decision === "deny")
    return goOn(parts, visit, await finish(parts, visit, { kind: "denied" }));
  if (
    decision === "select" &&
    interaction.prompt === "select_account" &&
    visit.visitor !== undefined
  )
    return goOn(parts, visit, await finish(parts, visit, select(visit.visitor)));
  const isShown =
    interaction.prompt === "consent" && form.get("shown") === fingerprint(interaction);
  // What is agreed to is what was on the page, by the one whom it showed.
  if (decision !== "allow" || !isShown) return { kind: "redirect", to: visit.path };
  return goOn(parts, visit, await finish(parts, visit, { kind: "consent", isAsked: true }));
}

async function find(parts: PageParts, visit: Visit): Promise<Interaction | undefined> {
  const interaction = await parts.oauth.interactions.find(visit.request, visit.response);
  return `/interaction/${interaction?.uid}` === visit.path ? interaction : undefined;
}

function finish(parts: PageParts, visit: Visit, outcome: InteractionOutcome): Promise<string> {
  return parts.oauth.interactions.finish(visit.request, visit.response, outcome);
}

async function describeScopes(
  { rbac }: PageParts,
  known: Readonly<Record<string, string>>,
  scopes: readonly string[],
): Promise<string[]> {
  const own = new Map((await rbac.listScopes()).map((scope) => [scope.name, scope.description]));
  return scopes.map((name) => {
    if (Object.hasOwn(known, name)) return known[name]!;
    const description = own.get(name) ?? "";
    return description === "" ? name : description;
  });
}

function fingerprint({ accountId, scopes }: Interaction): string {
  return [accountId ?? "", ...scopes].join(" ");
}

function isWeb(url: string | undefined): boolean {
  return /^https?:\/\//.test(url ?? "");
}

function showLink(text: string, url: string): Html {
  return html`<a href="${url}" rel="noreferrer noopener">${text}</a> `;
}
